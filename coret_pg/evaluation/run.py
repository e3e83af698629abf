"""One measure: every method on every question of a pool."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from coret_pg.api import Coret
from coret_pg.errors import EvaluationError
from coret_pg.evaluation.dataset import Case, lowered
from coret_pg.evaluation.methods import DENSE_DEPTHS, Asked, all_methods, dense_name
from coret_pg.evaluation.metrics import MeanScore, Score, mean, score
from coret_pg.evaluation.pool import Configuration, describe, doubts, require_gold
from coret_pg.offline.progress import Progress, Unwatched
from coret_pg.online.candidates import find_candidates, pairs_among, require_model

_DEEPEST = max(DENSE_DEPTHS)


@dataclass(frozen=True)
class CaseResult:
    """A question's answers and scores by method; `fallbacks`: why a chat model failed at it."""

    case: Case
    answers: Mapping[str, Sequence[str]]
    scores: Mapping[str, Score]
    fallbacks: Mapping[str, str]


@dataclass(frozen=True)
class Evaluation:
    """A finished measure.

    `cases_given`: questions the dataset has, of which `results` may be a part. `seconds`: the
    time of each stage, and of each method over all questions.
    """

    configuration: Configuration
    started_at: datetime
    methods: Sequence[str]
    results: Sequence[CaseResult]
    cases_given: int
    seconds: Mapping[str, float]
    warnings: Sequence[str]

    def mean_score(self, method: str, *, multi_table: bool = False) -> MeanScore | None:
        """Return a method's means over all questions, or over those with several gold tables.

        None where there is no such question.
        """
        return mean(
            [
                result.scores[method]
                for result in self.results
                if result.case.is_multi_table or not multi_table
            ]
        )

    @property
    def dense_recall_at_10(self) -> float:
        """Return the recall of the ten nearest tables."""
        found = self.mean_score(dense_name(10))
        return found.recall if found else 0.0

    @property
    def dense_perfect_recall_at_10(self) -> float:
        """Return the share of questions with every gold table among the ten nearest."""
        found = self.mean_score(dense_name(10))
        return found.perfect_recall if found else 0.0

    @property
    def fallbacks(self) -> Counter[str]:
        """Return by method how many answers are the fallback's, as the chat model failed."""
        return Counter(name for result in self.results for name in result.fallbacks)


def evaluate(
    coret: Coret,
    cases: Sequence[Case],
    *,
    pool: str = "own",
    limit: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Return every method's answers to the questions, scored.

    `limit`: ask so many of them only, spread evenly over their order. Nothing is written but
    the ledger of chat calls. Raises EvaluationError where the questions don't fit the pool,
    PoolError and ModelError as `retrieve` does; a chat model that fails is counted, no error.
    """
    progress = progress or Unwatched()
    started_at, started = datetime.now(UTC), time.perf_counter()
    asked_cases = _spread(cases, limit)
    embedder, chat, settings = coret.embedder, coret.chat, coret.settings
    methods = all_methods(chat)
    names = [method.name for method in methods]
    seconds = dict.fromkeys(["embedding", "candidates", *names, "total"], 0.0)
    results = []
    with coret.connection() as connection:
        model_id = require_model(connection, embedder)
        tables = require_gold(connection, model_id, asked_cases)
        configuration = describe(connection, settings, embedder, chat, pool, tables)
        warnings = dict.fromkeys(doubts(connection, model_id, settings, pool, tables))

        progress.start("embedding", len(asked_cases))
        before = time.perf_counter()
        vectors = []
        for case in asked_cases:
            # As questions, not documents: some models have a prompt for each.
            vectors.append(embedder.embed_question(case.question))
            progress.advance("embedding")
        progress.finish("embedding")
        seconds["embedding"] = time.perf_counter() - before

        progress.start("questions", len(asked_cases))
        for case, vector in zip(asked_cases, vectors, strict=True):
            before = time.perf_counter()
            candidates, remarks = find_candidates(connection, vector, max(_DEEPEST, settings.k))
            pairs = pairs_among(connection, candidates)
            seconds["candidates"] += time.perf_counter() - before
            warnings |= dict.fromkeys(remarks)
            asked = Asked(connection, settings, case.question, candidates, pairs, vector)
            for method in methods:
                asked.answer_of(method)
                seconds[method.name] += asked.seconds[method.name]
            results.append(_result(case, asked))
            progress.advance("questions")
        progress.finish("questions")
    seconds["total"] = time.perf_counter() - started
    return Evaluation(
        configuration=configuration,
        started_at=started_at,
        methods=names,
        results=results,
        cases_given=len(cases),
        seconds=seconds,
        warnings=list(warnings),
    )


def _result(case: Case, asked: Asked) -> CaseResult:
    name_of = {c.table_id: c.name for c in (*asked.candidates, *asked.beside)}
    answers = {
        method: [name_of[table_id] for table_id in table_ids]
        for method, table_ids in asked.answers.items()
    }
    return CaseResult(
        case=case,
        answers=answers,
        scores={
            method: score(lowered(tables), case.gold_tables) for method, tables in answers.items()
        },
        fallbacks=dict(asked.fallbacks),
    )


def _spread(cases: Sequence[Case], limit: int | None) -> list[Case]:
    """Return so many cases at even distances: files are sorted by database."""
    if not cases:
        raise EvaluationError("There is no question to ask", remedy="Give at least one")
    if limit is None or limit >= len(cases):
        return list(cases)
    if limit < 1:
        raise EvaluationError(f"The limit is {limit} questions", remedy="Ask at least one")
    return [cases[number * len(cases) // limit] for number in range(limit)]
