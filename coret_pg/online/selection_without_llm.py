"""Selection without a chat model: the set that covers the question's words and hangs together.

Every set of up to five of the candidates is rated: how near its tables are to the question, how
much of the question their names and values cover, how large it is, and whether joins
connect it. The best set wins. No training: the few constants are set on Spider's training
questions (docs/results.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import psycopg
from numpy.typing import NDArray

from coret_pg.online.candidates import read_names
from coret_pg.online.join_edges import edges_among
from coret_pg.online.question_words import QuestionWords
from coret_pg.online.result import Candidate, Choice, Pair
from coret_pg.online.widening import widen

LARGEST_SET = 5
# Ratings are in units of cosine similarity. How far below the nearest table a table may count
# as lying: bridges and tables found by a value are often far from the question.
FARTHEST = 0.15
COVERED_WORD = 0.6
MORE_TABLES = 0.01
MISSING_JOIN = 0.45
# Sets grow with the power of the candidates; the rest of a larger K is not looked at.
_MOST_NEAREST = 10


def select_without_llm(
    connection: psycopg.Connection,
    question: str,
    vector: NDArray[np.float32],
    candidates: Sequence[Candidate],
) -> Choice:
    """Return the chosen tables and the candidates they come from.

    The candidates are those given and, after them, some that a value, a name or a join of
    theirs points to. `vector`: the question's embedding. Deterministic.
    """
    words = QuestionWords(question)
    given = {candidate.table_id: candidate for candidate in candidates}
    nearest = candidates[:_MOST_NEAREST]
    wider = widen(connection, words, vector, nearest)
    found = wider.candidates
    beside = [
        replace(candidate, rank=rank)
        for rank, candidate in enumerate(
            (c for c in found if c.table_id not in given), start=len(candidates) + 1
        )
    ]
    looked_at = [*nearest, *(given[c.table_id] for c in found if c.table_id in given), *beside]
    table_ids = [candidate.table_id for candidate in looked_at]
    pairs = edges_among(connection, table_ids)
    coverage = words.coverage(read_names(connection, table_ids), wider.values)
    chosen = choose(
        [candidate.relevance for candidate in looked_at],
        coverage,
        strength_matrix(table_ids, pairs),
    )
    near = sorted(chosen, key=lambda place: (-looked_at[place].relevance, table_ids[place]))
    best = coverage[chosen].max(axis=0, initial=0)
    reasons = {
        table_ids[place]: _reason(words.words, (coverage[place] > 0) & (coverage[place] >= best))
        for place in chosen
    }
    return Choice(
        [table_ids[place] for place in near], [*candidates, *beside], wider.bridges, reasons
    )


def _reason(words: Sequence[str], covered: NDArray[np.bool_]) -> str:
    told = dict.fromkeys(word for word, is_told in zip(words, covered, strict=True) if is_told)
    return f"its names or values cover: {', '.join(told)}" if told else "near, or joins others"


def strength_matrix(table_ids: Sequence[int], pairs: Sequence[Pair]) -> NDArray[np.float32]:
    """Return how sure the best join of every two tables is, 0 to 1, (tables, tables).

    The square root of its confidence: a join that is one of four alike still counts for half.
    """
    place = {table_id: number for number, table_id in enumerate(table_ids)}
    strengths = np.zeros((len(place), len(place)), dtype=np.float32)
    for pair in pairs:
        a, b = place[pair.table_a], place[pair.table_b]
        strengths[a, b] = strengths[b, a] = max(strengths[a, b], pair.confidence**0.5)
    return strengths


def choose(
    relevances: Sequence[float], coverage: NDArray[np.float32], strengths: NDArray[np.float32]
) -> list[int]:
    """Return the places of the best set; of equal ones the smaller, then the nearer.

    `coverage`: (tables, words of the question), `strengths`: (tables, tables), both 0 to 1.
    """
    if not relevances:
        return []
    members = _subsets(len(relevances))
    distances = np.maximum(np.asarray(relevances) - max(relevances), -FARTHEST)
    covered = np.zeros((len(members), coverage.shape[1]), dtype=np.float32)
    for place, row in enumerate(coverage):
        if row.any():
            inside = members[:, place]
            covered[inside] = np.maximum(covered[inside], row)
    joins_needed = members.sum(axis=1) - 1
    ratings = (
        members @ distances
        + COVERED_WORD * covered.sum(axis=1)
        - MORE_TABLES * joins_needed
        - MISSING_JOIN * (joins_needed - _held_together(members, strengths))
    )
    # Rounded, so that equal sets are equal whatever the order of the additions.
    best = int(np.argmax(np.round(ratings, 6)))
    return [int(place) for place in np.flatnonzero(members[best])]


@lru_cache(maxsize=32)
def _subsets(count: int) -> NDArray[np.bool_]:
    """Return every set of up to LARGEST_SET of so many tables, (sets, tables), small ones first."""
    sets = [s for size in range(1, LARGEST_SET + 1) for s in combinations(range(count), size)]
    members = np.zeros((len(sets), count), dtype=np.bool_)
    for number, places in enumerate(sets):
        members[number, list(places)] = True
    return members


def _held_together(
    members: NDArray[np.bool_], strengths: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the sum of strengths over each set's maximum spanning forest (Kruskal)."""
    count = members.shape[1]
    parts = np.tile(np.arange(count, dtype=np.int8), (len(members), 1))
    held = np.zeros(len(members), dtype=np.float32)
    joins = [
        (strengths[a, b], a, b) for a, b in combinations(range(count), 2) if strengths[a, b] > 0
    ]
    for strength, a, b in sorted(joins, key=lambda join: (-join[0], join[1], join[2])):
        joined = members[:, a] & members[:, b] & (parts[:, a] != parts[:, b])
        held[joined] += strength
        inside = parts[joined]
        parts[joined] = np.where(inside == inside[:, [b]], inside[:, [a]], inside)
    return held
