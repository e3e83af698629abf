"""The command that writes the files of CREATE EXTENSION coret: extension."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coret_pg.cli.context import output, remarks
from coret_pg.database.extension import write_extension


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(extension)


def extension(
    folder: Annotated[
        Path,
        typer.Argument(help="Where the server looks: $(pg_config --sharedir)/extension."),
    ],
) -> None:
    """Write the files of the extension coret, for CREATE EXTENSION coret, into a folder."""
    for file in write_extension(folder):
        output.print(str(file), markup=False, highlight=False)
    remarks.print(
        "In a database, once vector is there: CREATE EXTENSION coret; or, where it is older: "
        "ALTER EXTENSION coret UPDATE;"
    )
