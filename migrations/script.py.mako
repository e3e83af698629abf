"""${message}."""

from coret_pg.database.migrate import run_schema_files

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    run_schema_files("...")


def downgrade() -> None:
    ...
