"""Candidates that lie too far from the question as a whole: found by a value, a name or a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray

from coret_pg.database.sqlfiles import query
from coret_pg.join_names import table_words
from coret_pg.online.candidates import locate
from coret_pg.online.question_words import QuestionWords, Value, weigh_values
from coret_pg.online.result import Candidate

# Set on Spider's training questions (docs/results.md): how many tables each way may add.
BY_VALUE = 3
BY_NAME = 2
BY_JOIN = 2
# A value found in more tables, or that weighs less, brings none of them in.
_MOST_TABLES_OF_A_VALUE = 5
_LEAST_WEIGHT = 0.3
# A bridge joins two of the nearest tables, by names that fit.
_ANCHORS = 5
_LEAST_FIT = 0.6
_BRIDGES_LOOKED_AT = 12


@dataclass(frozen=True)
class Wider:
    """Tables found beside the candidates, of true relevance, and how they were found.

    `bridges`: those found by joins alone.
    """

    candidates: list[Candidate]
    values: list[Value]
    bridges: frozenset[int]


def widen(
    connection: psycopg.Connection,
    words: QuestionWords,
    vector: NDArray[np.float32],
    candidates: Sequence[Candidate],
) -> Wider:
    """Return tables beside the candidates: that hold a value, join some of them, or are named."""
    values = find_values(connection, words)
    wider = list(candidates)
    telling = [
        value
        for value in values
        if len(value.table_ids) <= _MOST_TABLES_OF_A_VALUE and value.weight >= _LEAST_WEIGHT
    ]
    _add(wider, connection, vector, {t for v in telling for t in v.table_ids}, BY_VALUE)
    anchors = [*candidates[:_ANCHORS], *wider[len(candidates) :]]
    bridges = _bridges(connection, [a.table_id for a in anchors], [c.table_id for c in wider])
    before = len(wider)
    _add(wider, connection, vector, bridges, BY_JOIN)
    joined = frozenset(candidate.table_id for candidate in wider[before:])
    named = _named(connection, words)
    _add(wider, connection, vector, named, BY_NAME)
    return Wider(wider[len(candidates) :], values, joined - named)


def find_values(connection: psycopg.Connection, words: QuestionWords) -> list[Value]:
    """Return the phrases of a question that are values somewhere in the pool."""
    phrases = words.phrases
    spellings = list(dict.fromkeys(s for phrase in phrases for s in phrase.spellings))
    rows = connection.execute(query("question_values"), {"phrases": spellings}).fetchall()
    row = connection.execute(query("count_pool")).fetchone()
    return weigh_values(phrases, dict(rows), int(row[0]) if row else 0)


def _named(connection: psycopg.Connection, words: QuestionWords) -> set[int]:
    """Return the tables whose whole name is in the question."""
    compact = {s.replace(" ", "") for phrase in words.phrases for s in phrase.spellings}
    rows = connection.execute(query("tables_named"), {"names": sorted(compact)}).fetchall()
    return {table_id for table_id, name in rows if words.names_wholly(table_words(name))}


def _bridges(
    connection: psycopg.Connection, anchors: Sequence[int], known: Sequence[int]
) -> set[int]:
    """Return tables that join two of the anchors, or more."""
    rows = connection.execute(
        query("joined_tables"),
        {
            "anchors": list(anchors),
            "known": list(known),
            "least_fit": _LEAST_FIT,
            "most": _BRIDGES_LOOKED_AT,
        },
    ).fetchall()
    return {row[0] for row in rows}


def _add(
    wider: list[Candidate],
    connection: psycopg.Connection,
    vector: NDArray[np.float32],
    table_ids: set[int],
    most: int,
) -> None:
    """Add the nearest of some tables that aren't there yet."""
    new = table_ids - {candidate.table_id for candidate in wider}
    if new:
        wider += locate(connection, vector, sorted(new), most, first_rank=len(wider) + 1)
