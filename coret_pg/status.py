"""What the pool holds, how fresh it is, and by which models."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from coret_pg.database.sqlfiles import query
from coret_pg.offline.refresh import step_settings
from coret_pg.settings import Settings


@dataclass(frozen=True)
class StepStatus:
    """How many tables a refresh step has done, has to do, and skipped."""

    step: str
    tables: int
    done: int
    skipped: int
    due: int
    last_finished_at: datetime | None


@dataclass(frozen=True)
class PoolStatus:
    """The pool at a glance; `skipped` lists table, step and reason."""

    tables: int
    schemas: int
    columns: int
    compatible_pairs: int
    embedding_model: str | None
    purposes: dict[str, int]
    last_job: str | None
    steps: list[StepStatus]
    skipped: list[tuple[str, str, str]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)


def read_status(connection: psycopg.Connection, settings: Settings) -> PoolStatus:
    """Return the pool's status under these settings, as of the catalog of the last refresh."""
    with connection.cursor(row_factory=dict_row) as cursor:
        totals = cursor.execute(query("pool_totals")).fetchone() or {}
    model = connection.execute(
        query("configured_model"),
        {"provider": settings.embedding_provider, "model_name": settings.embedding_model},
    ).fetchone()
    wanted = step_settings(settings, settings.llm_model, model[0] if model else None)
    with connection.cursor(row_factory=class_row(StepStatus)) as steps_cursor:
        steps = steps_cursor.execute(
            query("step_status"), {"steps": list(wanted), "settings": list(wanted.values())}
        ).fetchall()
    skipped = connection.execute(query("skipped_tables")).fetchall()
    return PoolStatus(**totals, steps=steps, skipped=[(a, b, c) for a, b, c in skipped])
