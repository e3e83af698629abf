"""Sketches of large columns, scores without verdicts, joins with a confidence, people's verdicts."""

from alembic import op

from coret_pg.database.migrate import put_aside, run_schema_files, take_back

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_schema_files("090_profile_sketch.sql", "100_score_floor.sql", "110_join_edge.sql")
    take_back("join_verdict")


def downgrade() -> None:
    put_aside("join_verdict")
    op.execute("DROP TABLE coret.join_edge")
    op.execute("DELETE FROM coret.table_step WHERE step = 'joins'")
    op.execute(
        "ALTER TABLE coret.table_step DROP CONSTRAINT table_step_step_check,"
        " ADD CONSTRAINT table_step_step_check CHECK (step IN"
        " ('snapshot', 'profile', 'purpose', 'embedding', 'inclusion', 'compatibility'))"
    )
    op.execute(
        "ALTER TABLE coret.compatibility ADD COLUMN evidence text NOT NULL DEFAULT 'inferred'"
        " CHECK (evidence IN ('inferred', 'declared', 'confirmed', 'rejected'))"
    )
    op.execute("DROP TABLE coret.compatibility_setting")
    op.execute("ALTER TABLE coret.catalog_column DROP COLUMN header_hashes")
    # Computed anew, whole, by the next refresh of the older revision.
    op.execute("TRUNCATE coret.compatibility")
    op.execute("DELETE FROM coret.table_step WHERE step = 'compatibility'")
    for column in ("table_a", "table_b", "column_a", "column_b"):
        op.execute(
            f"ALTER TABLE coret.compatibility ADD FOREIGN KEY ({column})"
            f" REFERENCES coret.catalog_{column[:-2]} ON DELETE CASCADE"
        )
    op.execute("CREATE INDEX compatibility_column_a ON coret.compatibility (column_a)")
    op.execute("CREATE INDEX compatibility_column_b ON coret.compatibility (column_b)")
    op.execute("ALTER TABLE coret.catalog_table DROP COLUMN is_read_whole")
    op.execute("DROP TABLE coret.column_phrases")
    op.execute(
        "CREATE TABLE coret.column_value (column_id bigint NOT NULL REFERENCES coret.column_profile ON DELETE CASCADE,"
        ' value text COLLATE "C" NOT NULL, PRIMARY KEY (column_id, value))'
    )
    op.execute("CREATE INDEX column_value_value ON coret.column_value (value) INCLUDE (column_id)")
    # The older revision keeps values another way and knows no sketches: all is profiled anew.
    op.execute("DELETE FROM coret.table_step WHERE step = 'profile'")
    op.execute("DELETE FROM coret.column_profile WHERE sample_shift > 0")
    op.execute(
        "ALTER TABLE coret.column_profile DROP COLUMN sample_shift,"
        " ADD COLUMN is_sampled boolean NOT NULL DEFAULT false"
    )
