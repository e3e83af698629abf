"""Questions with known tables, and the pools they are asked of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coret_pg.demo import QUESTIONS_FILE
from coret_pg.errors import EvaluationError, InputError
from coret_pg.online.retrieve import check_question


@dataclass(frozen=True)
class Case:
    """A question and the tables its answer needs, as lower-case schema.table."""

    id: str
    question: str
    gold_tables: frozenset[str]

    @property
    def is_multi_table(self) -> bool:
        """Tell whether it needs more than one table."""
        return len(self.gold_tables) > 1


@dataclass(frozen=True)
class Pool:
    """A benchmark's pool: where its questions are, and how many tables they are asked of.

    `places`: paths tried below the dataset's folder, in this order; none: the dataset is the
    file itself. `tables`: None where any number will do.
    """

    places: tuple[str, ...]
    tables: int | None
    source: str


_SPIDER_PLACES = ("spider/questions_dev.jsonl", "questions_dev.jsonl")
POOLS: Mapping[str, Pool] = {
    "spider-dev": Pool(_SPIDER_PLACES, 80, "Spider dev questions, the tables of Spider dev"),
    "spider-open": Pool(
        _SPIDER_PLACES, 873, "Spider dev questions, the tables of Spider dev and train"
    ),
    "demo": Pool((), None, "the questions of the demo warehouse, shipped with the package"),
    "own": Pool((), None, "your own questions, a JSONL file"),
}


def load_cases(dataset: Path | None, pool: str) -> list[Case]:
    """Return the questions of a pool, in the order of their file.

    `dataset`: the benchmark's folder, or for "own" a JSONL file with an object a line:
    {"question", "gold_tables": ["schema.table", ...], "id"?}; "demo" needs none. Raises
    EvaluationError for an unknown pool, a missing file, and a line that can't be used (with its
    number).
    """
    return read_cases(_questions_file(dataset, pool))


def read_cases(file: Path) -> list[Case]:
    """Return the questions of a JSONL file; blank lines are passed over.

    Raises EvaluationError where it can't be read, with the line that is wrong.
    """
    try:
        # Bytes: a line ends at \n alone, and a line that is no UTF-8 can be named.
        lines = file.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise EvaluationError(
            f"{file} can't be read: {error.strerror}", remedy="Give a JSONL file (--dataset)"
        ) from error
    cases: list[Case] = []
    first_lines: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        case = _read_case(line, f"{file}, line {number}", default_id=f"line-{number}")
        if case.id in first_lines:
            raise EvaluationError(
                f"{file}, line {number}: the id {case.id!r} is that of line "
                f"{first_lines[case.id]} too",
                remedy="Give each question an id of its own, or none",
            )
        first_lines[case.id] = number
        cases.append(case)
    if not cases:
        raise EvaluationError(
            f"{file} holds no question", remedy="Give a JSONL file with a question a line"
        )
    return cases


def _questions_file(dataset: Path | None, pool: str) -> Path:
    if pool not in POOLS:
        raise EvaluationError(
            f"There is no pool named {pool!r}", remedy=f"Choose one of: {', '.join(POOLS)}"
        )
    if pool == "demo":
        return QUESTIONS_FILE
    places = POOLS[pool].places
    if dataset is None:
        kind = f"folder that holds {places[0]}" if places else "JSONL file of your questions"
        raise EvaluationError(
            f"The pool {pool} needs its questions", remedy=f"Give the {kind} (--dataset)"
        )
    if not places:
        return dataset
    tried = [dataset / place for place in places]
    for file in tried:
        if file.is_file():
            return file
    raise EvaluationError(
        f"{dataset} holds no questions of {pool}: looked for {' and '.join(map(str, tried))}",
        remedy="Give the folder of the benchmark data (--dataset)",
    )


def _read_case(line: bytes, where: str, *, default_id: str) -> Case:
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _unusable(where, "it is no UTF-8") from error
    except json.JSONDecodeError as error:
        raise _unusable(where, f"it is no JSON ({error.msg} at column {error.colno})") from error
    except RecursionError as error:
        raise _unusable(where, "it is nested too deep") from error
    if not isinstance(record, dict):
        raise _unusable(where, "it is no JSON object")
    missing = [key for key in ("question", "gold_tables") if key not in record]
    if missing:
        raise _unusable(where, f"it has no {' and no '.join(missing)}")
    question, case_id = record["question"], record.get("id", default_id)
    if not isinstance(question, str):
        raise _unusable(where, "its question is no text")
    if isinstance(case_id, bool) or not isinstance(case_id, str | int):
        raise _unusable(where, "its id is neither a text nor a whole number")
    try:
        question = check_question(question)
    except InputError as error:
        raise _unusable(where, f"its question can't be asked: {error.what}") from error
    return Case(str(case_id), question, _gold_tables(record["gold_tables"], where))


def _gold_tables(names: Any, where: str) -> frozenset[str]:
    if not isinstance(names, list) or not names:
        raise _unusable(where, "its gold_tables is no list of names, or an empty one")
    wrong = [name for name in names if not _is_qualified(name)]
    if wrong:
        raise _unusable(where, f"its gold_tables has {wrong[0]!r}, which is no schema.table")
    return frozenset(lowered(names))


def lowered(names: Sequence[str]) -> list[str]:
    """Return qualified names as they are compared: in lower case."""
    return [name.lower() for name in names]


def _is_qualified(name: Any) -> bool:
    if not isinstance(name, str):
        return False
    schema, _, table = name.partition(".")
    return bool(schema.strip() and table.strip())


def _unusable(where: str, reason: str) -> EvaluationError:
    return EvaluationError(
        f"{where}: {reason}",
        remedy='Write each line as {"question": "...", "gold_tables": ["schema.table", ...]}',
    )
