"""Run the migrations, on a connection handed over by coret_pg or on one of its own."""

from alembic import context

from coret_pg.database.migrate import own_connection, run_migrations

if context.is_offline_mode():
    raise SystemExit("alembic's --sql form is not supported: run `coret init`, or alembic online.")
handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    run_migrations(handed_over)
else:
    with own_connection() as connection:
        run_migrations(connection)
