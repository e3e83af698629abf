"""Calls from SQL, each caller's own rights, and what of the values may be shown."""

from alembic import op

from coret_pg.database.migrate import put_aside, run_schema_files, take_back

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_schema_files("120_samples.sql", "130_calls.sql")
    take_back("sample_policy", "deny_pattern")


def downgrade() -> None:
    put_aside("sample_policy", "deny_pattern")
    op.execute("DROP INDEX coret.catalog_table_plain_name")
    op.execute("ALTER TABLE coret.catalog_table DROP COLUMN plain_name")
    op.execute(
        "CREATE INDEX catalog_table_plain_name ON coret.catalog_table ((translate(lower(table_name), '_ -.', '')))"
    )
    op.execute("DELETE FROM coret.retrieval_table WHERE role = 'bridge'")
    op.execute(
        "ALTER TABLE coret.retrieval_table DROP CONSTRAINT retrieval_table_role_check,"
        " ADD CONSTRAINT retrieval_table_role_check CHECK (role IN"
        " ('selected', 'added by compatibility', 'added by expansion', 'not chosen')),"
        " DROP COLUMN own_columns, DROP COLUMN partner_columns, DROP COLUMN confidence, DROP COLUMN reason"
    )
    op.execute("ALTER TABLE coret.retrieval DROP COLUMN is_connected")
    op.execute("DROP TABLE coret.routine_build")
    op.execute("DROP TABLE coret.seal_key")
    op.execute("DROP TABLE coret.request")
    op.execute("ALTER TABLE coret.llm_call DROP COLUMN prompt, DROP COLUMN asked_by")
    op.execute("ALTER TABLE coret.purpose DROP COLUMN saw_samples")
    op.execute("ALTER TABLE coret.catalog_column DROP COLUMN sample_level")
    # The older revision keeps whole rows: they are sampled anew by its next refresh.
    op.execute("DELETE FROM coret.table_step WHERE step = 'snapshot'")
    op.execute("TRUNCATE coret.table_snapshot")
    op.execute(
        "ALTER TABLE coret.table_snapshot DROP COLUMN row_count, DROP COLUMN content_hash,"
        " ADD COLUMN column_names text[] NOT NULL, ADD COLUMN sampled_rows jsonb NOT NULL, ADD COLUMN markdown text NOT NULL"
    )
    op.execute("DROP TABLE coret.column_sample")
