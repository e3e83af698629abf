"""The first tables: catalog, profiles, purposes, embeddings, compatibility, refresh, retrievals."""

from alembic import op

from coret_pg.database.migrate import run_schema_files

revision = "0001"
down_revision = None

# What people wrote; kept aside by a downgrade, taken back by the next upgrade.
WRITTEN_BY_PEOPLE = ("purpose_note",)


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
    kept = (
        op.get_bind().exec_driver_sql("SELECT to_regnamespace('coret_kept') IS NOT NULL").scalar()
    )
    if kept:
        for table in WRITTEN_BY_PEOPLE:
            op.execute(f"INSERT INTO coret.{table} SELECT * FROM coret_kept.{table}")
        op.execute("DROP SCHEMA coret_kept CASCADE")


def downgrade() -> None:
    op.execute("CREATE SCHEMA coret_kept")
    op.execute(
        "COMMENT ON SCHEMA coret_kept IS 'What people wrote into coret; taken back by the next `coret init`.'"
    )
    for table in WRITTEN_BY_PEOPLE:
        op.execute(f"ALTER TABLE coret.{table} SET SCHEMA coret_kept")
    for table in (
        "llm_call", "retrieval_table", "retrieval", "job_step", "job", "table_step", "compatibility",
        "inclusion", "column_embedding", "table_embedding", "embedding_model", "purpose", "column_value",
        "column_keys", "column_profile", "table_snapshot", "declared_key", "catalog_column", "catalog_table", "source",
    ):  # fmt: skip
        op.execute(f"DROP TABLE coret.{table}")
