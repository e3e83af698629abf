"""The command that answers: retrieve."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from coret_pg.api import Coret
from coret_pg.cli.context import NOTHING_FITS, AsJson, Dsn, output, remarks, settings_of
from coret_pg.online.result import Retrieval


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(retrieve)


def retrieve(
    question: Annotated[str, typer.Argument(help="A question in plain words.")],
    k: Annotated[int | None, typer.Option("-k", help="Candidates (default: CORET_K, 10).")] = None,
    tau: Annotated[
        float | None, typer.Option(help="Score above which a partner is added (CORET_TAU, 0.5).")
    ] = None,
    slice_only: Annotated[
        bool, typer.Option("--slice", help="Write the schema slice alone.")
    ] = False,
    as_json: AsJson = False,
    dsn: Dsn = None,
) -> None:
    """Answer a question with the small, joinable set of tables it needs.

    Exit codes: 0 answered; 10 answered that no table fits; 2 bad input; 3 database; 5 model;
    6 empty pool.
    """
    with Coret(settings=settings_of(dsn)) as coret:
        answer = coret.retrieve(question, k=k, tau=tau)
    if as_json:
        output.print_json(json.dumps(answer.as_dict()))
    elif slice_only:
        output.print(answer.schema_slice, markup=False, highlight=False)
    else:
        show_answer(answer)
    for warning in answer.warnings:
        remarks.print(f"note: {warning}", markup=False)
    if not answer.tables:
        raise typer.Exit(NOTHING_FITS)


def show_answer(answer: Retrieval) -> None:
    """Print the set, its joins and the slice for a person."""
    tables = Table("table", "role", "relevance", "joined to", box=None)
    for table in answer.tables:
        tables.add_row(table.name, table.role, f"{table.relevance:.2f}", table.partner or "")
    output.print(tables if answer.tables else "No table of the pool fits this question.")
    output.print(join_graph(answer), markup=False, highlight=False)
    output.print(f"\n{answer.schema_slice}\n", markup=False, highlight=False)
    reason = f": {answer.path_reason}" if answer.path_reason else ""
    seconds = sum(answer.seconds.values())
    output.print(
        f"retrieval {answer.retrieval_id}, path {answer.path}{reason} ({seconds:.2f} s)",
        markup=False,
    )


def join_graph(answer: Retrieval) -> str:
    """Return the joins of an answer as text, a line a join; tables nothing joins stand alone."""
    lines = [f"  {join}" for join in answer.joins]
    joined = {name for join in answer.joins for name in (join.left_table, join.right_table)}
    alone = [table.name for table in answer.tables if table.name not in joined]
    if len(answer.tables) > 1:
        lines += [f"  {name}  (no join found)" for name in alone]
    return "\n".join(["joins:", *lines]) if lines else ""
