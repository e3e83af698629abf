"""A measure for people and for programs: a table on the screen, files in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from coret_pg.errors import EvaluationError
from coret_pg.evaluation.metrics import METRICS, MeanScore, Score
from coret_pg.evaluation.run import CaseResult, Evaluation

_DECIMALS = 3
_COLUMNS = ("precision", "recall", "F1", "perfect recall", "exact match", "mean tables")


def write_report(evaluation: Evaluation, folder: Path = Path("results")) -> Path:
    """Write a measure into a new folder <pool>-<UTC timestamp> below the given one; return it.

    configuration.json, summary.json, questions.jsonl (a question a line), table.md. Raises
    EvaluationError where it can't be written.
    """
    name = f"{evaluation.configuration.pool}-{evaluation.started_at:%Y%m%dT%H%M%SZ}"
    target = folder / name
    files = {
        "configuration.json": _json(_configuration(evaluation)),
        "summary.json": _json(summary(evaluation)),
        "questions.jsonl": "".join(
            json.dumps(_question(result), ensure_ascii=False) + "\n"
            for result in evaluation.results
        ),
        "table.md": markdown(evaluation),
    }
    try:
        target.mkdir(parents=True)
        for file_name, text in files.items():
            (target / file_name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(
            f"The report can't be written to {target}: {error.strerror}",
            remedy="Give a folder that can be written to",
        ) from error
    return target


def render(evaluation: Evaluation, console: Console) -> None:
    """Print a measure: a table over all questions, one over multi-table ones, and remarks."""
    for title, rows in _blocks(evaluation):
        table = Table(title=title, title_justify="left", box=None)
        table.add_column("method", overflow="fold")
        for column in _COLUMNS:
            # On a narrow screen the methods' names are what wraps.
            table.add_column(column.replace(" ", "\n"), justify="right", no_wrap=True)
        for method, cells in rows:
            table.add_row(method, *cells)
        console.print(table)
    for line in _remarks(evaluation):
        console.print(line, markup=False, highlight=False)


def markdown(evaluation: Evaluation) -> str:
    """Return a measure as Markdown: two tables, then the remarks."""
    parts = []
    for title, rows in _blocks(evaluation):
        lines = [f"**{title}**", "", f"| method | {' | '.join(_COLUMNS)} |"]
        lines.append("|---|" + "---:|" * len(_COLUMNS))
        lines += [f"| {method} | {' | '.join(cells)} |" for method, cells in rows]
        parts.append("\n".join(lines))
    parts.append("\n".join(f"- {line}" for line in _remarks(evaluation)))
    return "\n\n".join(parts) + "\n"


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """Return the means as plain data, ready for JSON; null where there is no such question."""
    return {
        "pool": evaluation.configuration.pool,
        "questions": len(evaluation.results),
        "questions_of_dataset": evaluation.cases_given,
        "dense_recall_at_10": round(evaluation.dense_recall_at_10, _DECIMALS),
        "dense_perfect_recall_at_10": round(evaluation.dense_perfect_recall_at_10, _DECIMALS),
        "all": {name: _means(evaluation.mean_score(name)) for name in evaluation.methods},
        "multi_table": {
            name: _means(evaluation.mean_score(name, multi_table=True))
            for name in evaluation.methods
        },
        "fallbacks": dict(evaluation.fallbacks),
        "seconds": {stage: round(spent, _DECIMALS) for stage, spent in evaluation.seconds.items()},
        "warnings": list(evaluation.warnings),
    }


def _configuration(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "started_at": evaluation.started_at.isoformat(timespec="seconds"),
        **asdict(evaluation.configuration),
        "methods": list(evaluation.methods),
    }


def _question(result: CaseResult) -> dict[str, Any]:
    methods: dict[str, Any] = {}
    for name, answer in result.answers.items():
        methods[name] = {"answer": list(answer), **_rounded(result.scores[name])}
        if name in result.fallbacks:
            methods[name]["fallback"] = result.fallbacks[name]
    return {
        "id": result.case.id,
        "question": result.case.question,
        "gold": sorted(result.case.gold_tables),
        "methods": methods,
    }


def _blocks(evaluation: Evaluation) -> Iterable[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield each table's title and rows: all questions, then those with several gold tables."""
    pool = evaluation.configuration.pool
    for multi_table in (False, True):
        means = {
            name: evaluation.mean_score(name, multi_table=multi_table)
            for name in evaluation.methods
        }
        count = next((found.questions for found in means.values() if found), 0)
        kind = "multi-table questions" if multi_table else "questions"
        yield (
            f"{pool}: {count:,} {kind}",
            [(name, _cells(found)) for name, found in means.items()],
        )


def _cells(found: MeanScore | None) -> list[str]:
    if found is None:
        return ["-"] * len(METRICS)
    return [f"{getattr(found, name):.{_DECIMALS}f}" for name in METRICS]


def _remarks(evaluation: Evaluation) -> list[str]:
    used, count = evaluation.configuration, len(evaluation.results)
    keys = f"{used.declared_keys} declared foreign keys (not used)"
    lines = [
        f"pool: {used.tables:,} tables, {keys if used.declared_keys else 'no declared keys'}",
        f"embedding: {used.embedding_model} by {used.embedding_provider}, text "
        f"{used.embedded_text!r}; K = {used.k}, tau = {used.tau:g}; "
        f"chat model: {used.chat_model or 'none'}",
        f"dense retrieval: recall@10 {evaluation.dense_recall_at_10:.3f}, perfect recall@10 "
        f"{evaluation.dense_perfect_recall_at_10:.3f}",
        f"coret_pg {used.versions['coret_pg']}, Postgres {used.versions['postgres']}, pgvector "
        f"{used.versions['pgvector extension']}; {evaluation.seconds['total']:.1f} s",
    ]
    if count < evaluation.cases_given:
        lines.append(f"a sample: {count:,} of the dataset's {evaluation.cases_given:,} questions")
    lines += [
        f"{name}: the chat model failed at {failed:,} of {count:,} questions, where the answer "
        "is the selection without LLM"
        for name, failed in evaluation.fallbacks.items()
    ]
    return [*lines, *(f"warning: {warning}" for warning in evaluation.warnings)]


def _means(found: MeanScore | None) -> dict[str, Any] | None:
    return None if found is None else {"questions": found.questions, **_rounded(found)}


def _rounded(found: Score) -> dict[str, float]:
    return {name: round(getattr(found, name), _DECIMALS) for name in METRICS}


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
