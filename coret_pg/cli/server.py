"""Commands for the embedded server: up, down."""

from __future__ import annotations

from typing import Annotated

import typer

from coret_pg.cli.context import output, settings_of


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(up)
    app.command()(down)


def up(
    port: Annotated[int | None, typer.Option(help="Also listen on 127.0.0.1 at this port.")] = None,
) -> None:
    """Start the embedded Postgres and keep it running until `coret down`."""
    from coret_pg.database.embedded import up as start

    with start(settings_of(None, server_port=port)) as server:
        output.print("The embedded Postgres runs. To reach it:")
        output.print(f'  psql "{server.dsn}"', markup=False, highlight=False)
        output.print(f"log: {server.log_file}", markup=False, highlight=False)


def down(
    force: Annotated[bool, typer.Option("--force", help="Even while others use it.")] = False,
) -> None:
    """Stop the embedded Postgres; its data stays."""
    from coret_pg.database.embedded import down as stop

    stopped = stop(settings_of(None), force=force)
    output.print("The embedded Postgres is stopped." if stopped else "It was not running.")
