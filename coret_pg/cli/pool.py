"""Commands that make the pool and keep it fresh: init, load, refresh, status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coret_pg.api import Coret
from coret_pg.cli.context import AsJson, Dsn, output, remarks, settings_of
from coret_pg.cli.progress import StepBars, TableBars, bars
from coret_pg.loading import LoadReport
from coret_pg.status import PoolStatus, read_status

_LISTED = 20


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (init, load, refresh, status):
        app.command()(command)


def init(dsn: Dsn = None) -> None:
    """Create or upgrade coret's schema in the database; safe to repeat."""
    with Coret(settings=settings_of(dsn)) as coret:
        state = coret.init()
        output.print(f"coret schema at revision {state.current} in {coret.database.address}")


def load(
    path: Annotated[
        Path,
        typer.Argument(help="A SQLite, CSV, Parquet or plain pg_dump file, or a folder of them."),
    ],
    schema: Annotated[str | None, typer.Option(help="Schema to load one source into.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace schemas that are there.")
    ] = False,
    keys: Annotated[
        bool, typer.Option("--keys/--no-keys", help="Create the keys a source declares.")
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a source that has a bad row.")
    ] = False,
    dsn: Dsn = None,
) -> None:
    """Load files into the pool: each source database becomes a schema."""
    with Coret(settings=settings_of(dsn)) as coret, bars() as progress:
        reports = coret.load(
            path, schema=schema, replace=replace, keys=keys, strict=strict,
            progress=TableBars(progress),
        )  # fmt: skip
    for report in reports:
        _show_load(report)


def refresh(
    full: Annotated[
        bool, typer.Option("--full", help="Do every step for every table anew.")
    ] = False,
    exact: Annotated[
        list[str] | None,
        typer.Option(
            "--exact", help="A big table (schema.table) to read whole from now on, not as a sketch."
        ),
    ] = None,
    dsn: Dsn = None,
) -> None:
    """Compute what is due about the pool: catalog, profiles, purposes, vectors, joins."""
    with Coret(settings=settings_of(dsn)) as coret:
        coret.init()
        with bars() as progress:
            report = coret.refresh(full=full, read_whole=exact or (), progress=StepBars(progress))
    change = report.catalog
    output.print(
        f"{report.tables} tables: {change.added} new, {change.changed} changed, "
        f"{change.removed} gone"
    )
    for name, step in report.steps.items():
        skipped = f", {len(step.skipped)} skipped" if step.skipped else ""
        output.print(f"  {name:<14} {step.done:>6} done{skipped}  ({step.seconds:.1f} s)")
        for table, reason in list(step.skipped.items())[:_LISTED]:
            remarks.print(f"    skipped {table}: {reason}", markup=False)


def status(as_json: AsJson = False, dsn: Dsn = None) -> None:
    """Show what the pool holds, how fresh it is, and by which models."""
    with Coret(settings=settings_of(dsn)) as coret, coret.connection() as connection:
        pool = read_status(connection, coret.settings)
        if as_json:
            output.print_json(json.dumps(pool.as_dict(), default=str))
        else:
            _show_status(pool, coret.database.address)


def _show_load(report: LoadReport) -> None:
    rejected = f", {report.rejected} rows rejected" if report.rejected else ""
    output.print(
        f"{report.file.name} -> {report.schema}: {len(report.tables)} tables, {report.rows:,} rows"
        f"{rejected} ({report.seconds:.1f} s)",
        markup=False,
    )
    for remark in report.remarks:
        remarks.print(f"  note: {remark}", markup=False)
    for row in report.rejects[:_LISTED]:
        remarks.print(f"  rejected {row.file}:{row.line}: {row.reason}", markup=False)
    if report.rejected > _LISTED:
        remarks.print(f"  ... and {report.rejected - _LISTED} more rejected rows")
    if report.skipped:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(report.skipped.items()))
        remarks.print(f"  statements left out: {counts}", markup=False)


def _show_status(pool: PoolStatus, address: str) -> None:
    output.print(
        f"{address}: {pool.tables} tables in {pool.schemas} schemas, {pool.columns} columns, "
        f"{pool.compatible_pairs:,} compatible pairs",
        markup=False,
    )
    output.print(f"embedding model: {pool.embedding_model or 'none yet'}", markup=False)
    made = ", ".join(f"{count} {by}" for by, count in pool.purposes.items())
    output.print(f"purposes: {made or 'none yet'}", markup=False)
    steps = Table("step", "done", "due", "skipped", "last finished", box=None)
    for step in pool.steps:
        steps.add_row(
            step.step, str(step.done), str(step.due), str(step.skipped),
            f"{step.last_finished_at:%Y-%m-%d %H:%M:%S}" if step.last_finished_at else "never",
        )  # fmt: skip
    output.print(steps)
    if pool.last_job:
        output.print(f"last refresh: {pool.last_job}", markup=False)
    for name, step_name, reason in pool.skipped[:_LISTED]:
        remarks.print(f"skipped in {step_name}: {name}: {reason}", markup=False)
