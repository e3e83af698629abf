"""Candidates: the K tables nearest to the question, and the compatibility among them."""

from collections.abc import Sequence

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector

from coret_pg.database.sqlfiles import query
from coret_pg.errors import ModelError, PoolError
from coret_pg.models import Embedder
from coret_pg.online.question_words import NamedTable
from coret_pg.online.result import Candidate, Pair


def require_model(connection: psycopg.Connection, embedder: Embedder) -> int:
    """Return the id of the active model, which has to be the embedder's.

    Raises PoolError where no refresh has ended yet, ModelError where it is another model.
    """
    row = connection.execute(query("active_model")).fetchone()
    if row is None:
        raise PoolError(
            "The pool was never refreshed: no table has an embedding",
            remedy="Run `coret refresh` first",
        )
    model_id, *of_pool = row
    ours = [embedder.provider, embedder.name, embedder.revision, embedder.dimension]
    if of_pool != ours:
        raise ModelError(
            f"The pool is embedded with {of_pool[1]} by {of_pool[0]} ({of_pool[3]} dimensions), "
            f"the question would be with {ours[1]} by {ours[0]} ({ours[3]} dimensions)",
            remedy="Set CORET_EMBEDDING_PROVIDER and CORET_EMBEDDING_MODEL to the pool's, or run "
            "`coret refresh` to embed it anew",
        )
    return int(model_id)


def find_candidates(
    connection: psycopg.Connection, question: NDArray[np.float32], k: int
) -> tuple[list[Candidate], list[str]]:
    """Return the k nearest tables that are still there, nearest first, and warnings.

    `question`: its embedding, (dimension,).
    """
    register_vector(connection)
    found = _nearest(connection, question, k, include_vanished=True)
    vanished = [candidate.name for candidate in found if not candidate.is_current]
    warnings = []
    if vanished:
        warnings.append(
            f"{', '.join(vanished)}: dropped, recreated or renamed after the last refresh, left "
            "out; run `coret refresh`"
        )
        found = _nearest(connection, question, k, include_vanished=False)
    if not found:
        raise PoolError(
            "The pool is empty: no table that was refreshed is still there",
            remedy="Load tables (`coret load PATH`) and run `coret refresh`",
        )
    if len(found) < k:
        warnings.append(f"the pool holds only {len(found)} tables: all of them are candidates")
    return found, warnings


def pairs_among(connection: psycopg.Connection, candidates: Sequence[Candidate]) -> list[Pair]:
    """Return the compatible pairs among some tables, strongest first."""
    table_ids = [candidate.table_id for candidate in candidates]
    rows = connection.execute(query("pairs_among"), {"table_ids": table_ids}).fetchall()
    return [Pair(*row) for row in rows]


def read_names(connection: psycopg.Connection, table_ids: Sequence[int]) -> list[NamedTable]:
    """Return the names of some tables and of their columns, in the order of the tables given."""
    rows = connection.execute(query("table_names"), {"table_ids": list(table_ids)}).fetchall()
    found = {row[0]: NamedTable(*row) for row in rows}
    return [found.get(table_id) or NamedTable(table_id, "", []) for table_id in table_ids]


def locate(
    connection: psycopg.Connection,
    question: NDArray[np.float32],
    table_ids: Sequence[int],
    most: int,
    *,
    first_rank: int,
) -> list[Candidate]:
    """Return the nearest of some tables as candidates, ranked on from `first_rank`."""
    register_vector(connection)
    rows = connection.execute(
        query("locate_tables"),
        {"question": Vector(question), "table_ids": list(table_ids), "most": most},
    ).fetchall()
    return [Candidate(rank, *row) for rank, row in enumerate(rows, start=first_rank)]


def _nearest(
    connection: psycopg.Connection, question: NDArray[np.float32], k: int, *, include_vanished: bool
) -> list[Candidate]:
    rows = connection.execute(
        "SELECT rank, table_id, schema_name, table_name, relevance, is_current "
        "FROM coret.candidates(%s, %s, %s)",
        [Vector(question), k, include_vanished],
    ).fetchall()
    return [Candidate(*row) for row in rows]
