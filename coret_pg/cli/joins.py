"""Commands on joins: joins, join-path, join-graph, and a person's verdicts."""

from __future__ import annotations

import dataclasses
import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coret_pg.api import Coret
from coret_pg.cli.context import NOTHING_FITS, AsJson, Dsn, output, remarks, settings_of
from coret_pg.errors import InputError
from coret_pg.online.joins import LEAST_CONFIDENCE, Verdict
from coret_pg.pictures import as_dot, as_mermaid, as_svg

_END = "schema.table.column, or schema.table(column, column)."
Left = Annotated[str, typer.Argument(help=f"One side: {_END}")]
Right = Annotated[str, typer.Argument(help=f"The other side: {_END}")]
MinConfidence = Annotated[
    float, typer.Option("--min-confidence", min=0, max=1, help="Leave out less sure joins.")
]


class Format(StrEnum):
    """Forms that a join graph can be drawn in."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"


_DRAW = {Format.mermaid: as_mermaid, Format.dot: as_dot, Format.svg: as_svg}


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (joins, join_path, join_graph, accept_join, reject_join, forget_join):
        app.command()(command)


def joins(
    table: Annotated[str, typer.Argument(help="A table of the pool, as schema.table.")],
    min_confidence: MinConfidence = LEAST_CONFIDENCE,
    as_json: AsJson = False,
    dsn: Dsn = None,
) -> None:
    """Show which tables a table joins, on which columns, how surely and why.

    Exit codes: 0 shown; 10 none found.
    """
    with Coret(settings=settings_of(dsn)) as coret:
        found = coret.joins(table, min_confidence=min_confidence)
    if as_json:
        output.print_json(json.dumps([dataclasses.asdict(join) for join in found]))
    else:
        rows = Table("joins", "on", "", "confidence", "why", box=None)
        for join in found:
            on = ", ".join(
                f"{own} = {other}"
                for own, other in zip(join.own_columns, join.other_columns, strict=True)
            )
            rows.add_row(
                join.other_table, on, join.cardinality, f"{join.confidence:.2f}",
                "; ".join(join.reasons),
            )  # fmt: skip
        output.print(rows if found else f"No join of {table} is as sure as {min_confidence:g}.")
    if not found:
        raise typer.Exit(NOTHING_FITS)


def join_path(
    from_table: Annotated[str, typer.Argument(help="Where the way begins, as schema.table.")],
    to_table: Annotated[str, typer.Argument(help="Where it ends.")],
    max_hops: Annotated[int, typer.Option(min=1, max=4, help="The most joins.")] = 4,
    as_json: AsJson = False,
    dsn: Dsn = None,
) -> None:
    """Show the surest way to join two tables.

    Exit codes: 0 shown; 10 there is no way.
    """
    with Coret(settings=settings_of(dsn)) as coret:
        path = coret.join_path(from_table, to_table, max_hops=max_hops)
    if as_json:
        output.print_json(json.dumps([dataclasses.asdict(join) for join in path]))
    elif not path:
        output.print(f"No way of at most {max_hops} joins leads from {from_table} to {to_table}.")
    for join in path if not as_json else []:
        output.print(f"{join.hop}. {join}", markup=False, highlight=False)
    if not path:
        raise typer.Exit(NOTHING_FITS)


def join_graph(
    schemas: Annotated[
        list[str] | None, typer.Argument(help="Schemas whose tables are drawn.")
    ] = None,
    question: Annotated[
        str | None, typer.Option("--question", help="Draw the answer to a question instead.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="How it is drawn.", case_sensitive=False)
    ] = Format.mermaid,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, instead of standard output.")
    ] = None,
    min_confidence: MinConfidence = LEAST_CONFIDENCE,
    dsn: Dsn = None,
) -> None:
    """Draw the join graph of schemas or of an answer; inferred joins are dashed."""
    if bool(schemas) == (question is not None):
        raise InputError(
            "Nothing to draw, or two things", remedy="Name schemas, or give --question, not both"
        )
    with Coret(settings=settings_of(dsn)) as coret:
        of = coret.retrieve(question) if question is not None else schemas or []
        drawn = _DRAW[form](coret.picture(of, min_confidence=min_confidence))
    if to is None:
        typer.echo(drawn)
        return
    try:
        to.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{to} can't be written: {error.strerror}", remedy="Name a file in a folder you own"
        ) from None
    remarks.print(f"written to {to}", markup=False)


def accept_join(left: Left, right: Right, dsn: Dsn = None) -> None:
    """Say that two tables join on these columns: sure from now on, through every refresh."""
    _decide(left, right, "accepted", dsn)


def reject_join(left: Left, right: Right, dsn: Dsn = None) -> None:
    """Say that two tables don't join on these columns: left out, through every refresh."""
    _decide(left, right, "rejected", dsn)


def forget_join(left: Left, right: Right, dsn: Dsn = None) -> None:
    """Withdraw a verdict; the next refresh looks at the join anew."""
    _decide(left, right, "undecided", dsn)


def _decide(left: str, right: str, verdict: Verdict, dsn: str | None) -> None:
    with Coret(settings=settings_of(dsn)) as coret:
        coret.decide_join(left, right, verdict)
    output.print(f"{verdict}: {left} = {right}", markup=False, highlight=False)
