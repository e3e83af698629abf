"""The command that answers questions from SQL: worker."""

from __future__ import annotations

import logging
import signal
from typing import Annotated

import typer

from coret_pg.api import Coret
from coret_pg.cli.context import Dsn, output, remarks, settings_of
from coret_pg.errors import DatabaseError
from coret_pg.worker import Worker, count_workers


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(worker)


def worker(
    check: Annotated[
        bool, typer.Option("--check", help="Only tell whether one runs: exit code 0, else 3.")
    ] = False,
    dsn: Dsn = None,
) -> None:
    """Answer questions from SQL (coret.retrieve ...) until it is stopped; several share them.

    Each is answered with the rights of the role that asked it. SIGTERM or Ctrl-C: no more
    questions are taken, what runs is finished.
    """
    with Coret(settings=settings_of(dsn)) as coret:
        if check:
            with coret.connection() as connection:
                count = count_workers(connection)
            if not count:
                raise DatabaseError(
                    f"No worker runs for {coret.database.address}", remedy="Start `coret worker`"
                )
            output.print(f"{count} running")
            return
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        runs = Worker(coret.database, coret.embedder, coret.chat)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: runs.stop())
        remarks.print("A worker runs; stop it with Ctrl-C.")
        runs.run()
