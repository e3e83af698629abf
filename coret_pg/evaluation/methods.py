"""The methods that are compared: each turns a question's candidates into a set of tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import psycopg
from numpy.typing import NDArray

from coret_pg.errors import ModelError
from coret_pg.models import ChatModel
from coret_pg.online.adjustment import adjust
from coret_pg.online.result import Candidate, Pair
from coret_pg.online.selection import select_with_llm
from coret_pg.online.selection_without_llm import select_without_llm
from coret_pg.settings import Settings

DENSE_DEPTHS = (3, 5, 10)


@dataclass
class Asked:
    """One question under way: what every method gets, and what came of those that have run.

    `candidates`: nearest first, at least as many as the deepest method reads; `vector`: the
    question's embedding; `beside`: tables that selection without a chat model found elsewhere.
    """

    connection: psycopg.Connection
    settings: Settings
    question: str
    candidates: Sequence[Candidate]
    pairs: Sequence[Pair]
    vector: NDArray[np.float32]
    answers: dict[str, list[int]] = field(default_factory=dict)
    fallbacks: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    beside: list[Candidate] = field(default_factory=list)

    @property
    def given(self) -> Sequence[Candidate]:
        """Return the candidates a selection gets: K of them, as `retrieve` has it."""
        return self.candidates[: self.settings.k]

    def answer_of(self, method: Method) -> list[int]:
        """Return a method's table ids, nearest first; each method runs once a question."""
        if method.name not in self.answers:
            started = time.perf_counter()
            self.answers[method.name] = method.answer(self)
            self.seconds[method.name] = time.perf_counter() - started
        return self.answers[method.name]


@dataclass(frozen=True)
class Method:
    """A way to choose tables: its name in every report, and the function that does it."""

    name: str
    answer: Callable[[Asked], list[int]]


def all_methods(chat: ChatModel | None) -> list[Method]:
    """Return the methods in the order of the report; those with a chat model if there is one."""
    selections = [Method("selection without LLM", _without_llm)]
    if chat is not None:
        selections.append(by_llm(chat))
    methods = [dense(depth) for depth in DENSE_DEPTHS]
    for selection in selections:
        methods += [selection, adjusted(selection), adjusted(selection, expand_single=True)]
    return methods


def dense(depth: int) -> Method:
    """Return dense retrieval: the nearest `depth` tables."""
    return Method(
        dense_name(depth),
        lambda asked: [candidate.table_id for candidate in asked.candidates[:depth]],
    )


def dense_name(depth: int) -> str:
    """Return the name of dense retrieval at a depth."""
    return f"DR@{depth}"


def by_llm(chat: ChatModel) -> Method:
    """Return selection by a chat model; where it fails, the fallback of `retrieve` counts."""

    def answer(asked: Asked) -> list[int]:
        try:
            return select_with_llm(
                asked.connection, chat, asked.question, asked.given, asked.pairs
            ).table_ids
        except ModelError as error:
            asked.fallbacks[name] = str(error)
            return _without_llm(asked)

    name = "selection by LLM"
    return Method(name, answer)


def adjusted(selection: Method, *, expand_single: bool = False) -> Method:
    """Return a selection with both steps of the adjustment after it, at the settings' tau.

    `expand_single`: whether the second step runs on a group of one.
    """

    def answer(asked: Asked) -> list[int]:
        selected = asked.answer_of(selection)
        candidates = [*asked.given, *(c for c in asked.beside if c.table_id in selected)]
        by_name = {candidate.name: candidate.table_id for candidate in candidates}
        tables = adjust(
            asked.connection, candidates, selected, asked.settings.tau, expand_single=expand_single
        )
        return [by_name[table.name] for table in tables]

    suffix = ", single expanded" if expand_single else ""
    return Method(f"{selection.name} + adjustment{suffix}", answer)


def _without_llm(asked: Asked) -> list[int]:
    choice = select_without_llm(asked.connection, asked.question, asked.vector, asked.given)
    asked.beside = choice.candidates[len(asked.given) :]
    return choice.table_ids
