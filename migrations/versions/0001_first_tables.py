"""The first tables: catalog, profiles, purposes, embeddings, compatibility, refresh, retrievals."""

from alembic import op

from coret_pg.database.migrate import put_aside, run_schema_files, take_back

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_schema_files(
        "020_catalog.sql",
        "030_profile.sql",
        "040_purpose.sql",
        "050_embedding.sql",
        "060_compatibility.sql",
        "070_refresh.sql",
        "080_retrieval.sql",
    )
    op.execute("COMMENT ON TABLE coret.schema_version IS 'Revision of this schema (alembic).'")
    take_back("purpose_note")


def downgrade() -> None:
    put_aside("purpose_note")
    for table in (
        "llm_call", "retrieval_table", "retrieval", "job_step", "job", "table_step", "compatibility",
        "inclusion", "column_embedding", "table_embedding", "embedding_model", "purpose", "column_value",
        "column_keys", "column_profile", "table_snapshot", "declared_key", "catalog_column", "catalog_table", "source",
    ):  # fmt: skip
        op.execute(f"DROP TABLE coret.{table}")
