"""One question from SQL, answered with the rights of the role that asked it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from coret_pg.models import ChatModel, Embedder, Patience
from coret_pg.online.result import ChosenTable, Retrieval
from coret_pg.online.retrieve import retrieve
from coret_pg.settings import Settings
from coret_pg.worker.requests import Request, is_wanted

# Kept of the caller's time for what follows the chat model, or stands in for it.
_RESERVE = 0.1


@contextmanager
def acting_for(connection: psycopg.Connection, role: str) -> Iterator[None]:
    """Use a session with the rights of a role for a `with` block (SQL: coret.reader).

    The session itself becomes coret_worker, which may do nothing but read, by row-level
    security, what that role may.
    """
    connection.execute(
        "SELECT set_config('role', 'coret_worker', false), set_config('coret.reader', %s, false)",
        [role],
    )
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(
                "SELECT set_config('role', 'none', false), set_config('coret.reader', '', false)"
            )


def answer(
    connection: psycopg.Connection,
    embedder: Embedder,
    chat: ChatModel | None,
    settings: Settings,
    request: Request,
) -> dict[str, Any]:
    """Return the answer to a request, as coret.answer_tables reads it.

    Raises CoretError, and Abandoned where nobody waits for it any more.
    """
    patience = Patience(
        until=time.monotonic() + request.seconds_left * (1 - _RESERVE),
        is_wanted=lambda: is_wanted(connection, request),
    )
    with acting_for(connection, request.asked_by):
        found = retrieve(
            connection, embedder, chat, request.question,
            k=settings.k if request.k is None else request.k,
            tau=settings.tau if request.tau is None else request.tau,
            patience=patience,
        )  # fmt: skip
    return _as_json(found)


def _as_json(found: Retrieval) -> dict[str, Any]:
    names = {c.name: (c.schema_name, c.table_name) for c in found.candidates}

    def row(table: ChosenTable) -> dict[str, Any]:
        partner_schema, partner_table = names.get(table.partner or "", (None, None))
        return {
            "rank": table.rank,
            "schema_name": table.schema_name,
            "table_name": table.table_name,
            "role": table.role,
            "relevance": table.relevance,
            "partner_schema": partner_schema,
            "partner_table": partner_table,
            "own_columns": table.own_columns,
            "partner_columns": table.partner_columns,
            "confidence": table.confidence,
            "reason": table.reason,
        }

    return {
        "retrieval_id": found.retrieval_id,
        "path": found.path,
        "path_reason": found.path_reason,
        "is_connected": found.is_connected,
        "warnings": list(found.warnings),
        "tables": [row(table) for table in found.tables],
        "joins": [str(join) for join in found.joins],
        "schema_slice": found.schema_slice,
    }
