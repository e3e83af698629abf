"""The queue of questions from SQL (coret.request): claim one, write down what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from coret_pg.database.sqlfiles import query
from coret_pg.errors import CoretError


@dataclass(frozen=True)
class Request:
    """A question from SQL, taken by this worker; `attempts` counts the workers that took it."""

    request_id: int
    question: str
    k: int | None
    tau: float | None
    asked_by: str
    waiter: int | None
    attempts: int
    seconds_left: float


def claim(connection: psycopg.Connection, worker_pid: int) -> Request | None:
    """Return the oldest question that waits, taken for this worker; None where none does."""
    with connection.cursor(row_factory=class_row(Request)) as cursor:
        return cursor.execute(query("claim_request"), {"worker": worker_pid}).fetchone()


def answered(connection: psycopg.Connection, request: Request, answer: Mapping[str, Any]) -> None:
    """Hand the answer over."""
    _end(connection, request, "answered", answer=Jsonb(answer))


def failed(connection: psycopg.Connection, request: Request, error: CoretError) -> None:
    """Tell the caller why there is no answer."""
    _end(connection, request, "failed", problem=error.what, remedy=f"{error.remedy}.")


def cancelled(connection: psycopg.Connection, request: Request) -> None:
    """Write down that nobody waits for the answer any more."""
    _end(connection, request, "cancelled")


def is_wanted(connection: psycopg.Connection, request: Request) -> bool:
    """Tell whether the caller still waits: it holds a lock while it does."""
    if request.waiter is None:
        return True
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [request.waiter]).fetchone()
    return not (row and row[0])


def tend(connection: psycopg.Connection) -> int:
    """Look after the queue; return how many requests of dead workers wait again."""
    row = connection.execute(query("tend_requests")).fetchone()
    return int(row[0]) if row else 0


def _end(connection: psycopg.Connection, request: Request, state: str, **result: Any) -> None:
    outcome = {"answer": None, "problem": None, "remedy": None} | result
    connection.execute(
        query("end_request"),
        {
            "request_id": request.request_id,
            "attempts": request.attempts,
            "state": state,
            **outcome,
        },
    )
