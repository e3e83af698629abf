"""The demo's answers held against the right tables and the right join columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from coret_pg.api import Coret
from coret_pg.demo import QUESTIONS_FILE
from coret_pg.online.result import Retrieval


@dataclass(frozen=True)
class DemoAnswer:
    """A demo question's answer: what is missing, what is too much, how many gold joins it has."""

    id: str
    answer: Retrieval
    missing: frozenset[str]
    extra: frozenset[str]
    gold_joins: int
    found_joins: int

    @property
    def is_right(self) -> bool:
        """Tell whether the set holds the right tables and no other."""
        return not self.missing and not self.extra


def score_demo(coret: Coret) -> Iterator[DemoAnswer]:
    """Ask every demo question and compare its answer with the known one."""
    for line in QUESTIONS_FILE.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        answer = coret.retrieve(case["question"])
        gold, found = frozenset(case["gold_tables"]), frozenset(answer.table_names)
        gold_joins = {frozenset(join) for join in case["gold_joins"]}
        joins = {
            frozenset(condition.split(" = "))
            for join in answer.joins
            for condition in join.conditions
        }
        yield DemoAnswer(
            case["id"], answer, gold - found, found - gold, len(gold_joins), len(gold_joins & joins)
        )
