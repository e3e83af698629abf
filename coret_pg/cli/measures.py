"""Commands that measure: eval, demo."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coret_pg.api import Coret
from coret_pg.cli.answers import show_answer
from coret_pg.cli.context import Dsn, output, remarks, settings_of
from coret_pg.cli.progress import StepBars, TableBars, bars
from coret_pg.demo import build_warehouse
from coret_pg.evaluation import POOLS, evaluate, load_cases, render, write_report
from coret_pg.evaluation.demo_score import score_demo

_DEMO_SHOWN = ("school-2", "sales-3", "clinic-2")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("eval")(measure)
    app.command()(demo)


def measure(
    pool: Annotated[str, typer.Option(help=f"The pool and its questions: {', '.join(POOLS)}.")],
    dataset: Annotated[
        Path | None,
        typer.Option(help="Folder of the dataset, or a JSONL file of questions (pool own)."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only so many questions.")] = None,
    results: Annotated[Path, typer.Option(help="Folder the report goes to.")] = Path("results"),
    dsn: Dsn = None,
) -> None:
    """Measure retrieval against questions whose tables are known; write tables and JSON."""
    cases = load_cases(dataset, pool)
    with Coret(settings=settings_of(dsn)) as coret, bars() as progress:
        evaluation = evaluate(coret, cases, pool=pool, limit=limit, progress=StepBars(progress))
    folder = write_report(evaluation, results)
    render(evaluation, output)
    for warning in evaluation.warnings:
        remarks.print(f"note: {warning}", markup=False)
    output.print(f"written to {folder}", markup=False)


def demo(dsn: Dsn = None) -> None:
    """Load the demo warehouse, refresh, answer questions, and score every answer.

    Its six schemas (sales, logistics, hr, clinic, school, streaming) replace those of these
    names; on the embedded server nothing else is there.
    """
    with Coret(settings=settings_of(dsn)) as coret:
        coret.init()
        with tempfile.TemporaryDirectory() as folder, bars() as progress:
            for file in build_warehouse(Path(folder)):
                report = coret.load(file, replace=True, progress=TableBars(progress))[0]
                output.print(
                    f"loaded {report.schema}: {len(report.tables)} tables, {report.rows:,} rows"
                )
        with bars() as progress:
            refreshed = coret.refresh(progress=StepBars(progress))
        seconds = sum(step.seconds for step in refreshed.steps.values())
        output.print(f"refreshed {refreshed.tables} tables in {seconds:.1f} s\n")
        for case in load_cases(None, "demo"):
            if case.id in _DEMO_SHOWN:
                output.rule(f"[bold]{case.question}", align="left")
                show_answer(coret.retrieve(case.question))
        output.rule("[bold]All questions, against the right answers", align="left")
        _score_all(coret)


def _score_all(coret: Coret) -> None:
    """Print for each demo question whether its set and its joins are right, and the totals."""
    table = Table("question", "tables", "missing", "too much", "joins", box=None)
    scores = []
    for score in score_demo(coret):
        scores.append(score)
        table.add_row(
            score.id,
            "[green]right[/]" if score.is_right else "[yellow]not quite[/]",
            ", ".join(sorted(score.missing)),
            ", ".join(sorted(score.extra)),
            f"{score.found_joins} of {score.gold_joins}",
        )
    output.print(table)
    right = sum(score.is_right for score in scores)
    covered = sum(not score.missing for score in scores)
    joins = sum(score.found_joins for score in scores)
    output.print(
        f"{right} of {len(scores)} sets are exactly right, {covered} hold every table needed; "
        f"{joins} of {sum(score.gold_joins for score in scores)} joins have the right columns"
    )
