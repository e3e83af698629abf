"""The command that checks the ground: doctor."""

from __future__ import annotations

import dataclasses
import json

import typer

from coret_pg.cli.context import AsJson, Dsn, output, settings_of
from coret_pg.doctor import examine

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(doctor)


def doctor(as_json: AsJson = False, dsn: Dsn = None) -> None:
    """Check server, extensions, privileges, models: each ok, warn or fail, with the remedy.

    Exit code 1 if any check fails.
    """
    checks = []
    for check in examine(settings_of(dsn)):
        checks.append(check)
        if not as_json:
            colour = _COLOURS[check.state]
            output.print(f"[{colour}]{check.state:<4}[/] ", end="")
            output.print(f"{check.name}: {check.found}", markup=False, highlight=False)
            if check.remedy:
                output.print(f"       {check.remedy}", markup=False, highlight=False)
    if as_json:
        output.print_json(json.dumps([dataclasses.asdict(check) for check in checks]))
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(1)
