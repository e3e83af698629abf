"""Run the migrations, on a connection handed over by coret_pg or on one of its own."""

from alembic import context
from sqlalchemy import Connection

from coret_pg.database.migrate import VERSION_TABLE, own_connection


def run(connection: Connection) -> None:
    context.configure(
        connection=connection, version_table=VERSION_TABLE, version_table_schema="coret"
    )
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    raise SystemExit(
        "The SQL files are the offline form: run sql/schema/*.sql, then sql/functions/*.sql."
    )
handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    run(handed_over)
else:
    with own_connection() as connection:
        run(connection)
