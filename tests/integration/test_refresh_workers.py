"""Several workers of one refresh: they find the same, and none is left behind."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from coret_pg import Coret
from coret_pg.errors import DatabaseError
from coret_pg.offline.profile import profile_table
from coret_pg.offline.refresh import STEPS
from coret_pg.offline.steps import _WORKER_LOCK
from tests.integration.test_refresh import NOTHING, done, one


@pytest.mark.parametrize("count", [1, 2, 5])
def test_any_number_of_workers_finds_the_same(demo_dsn: str, count: int) -> None:
    everything = [
        "SELECT column_id, row_count, distinct_count, min_value, frequent_values, min_key, max_key FROM coret.column_profile ORDER BY 1",
        "SELECT column_id, keys FROM coret.column_keys ORDER BY 1",
        "SELECT sub_column, sup_column FROM coret.inclusion ORDER BY 1, 2",
        "SELECT table_a, table_b, column_a, column_b, score FROM coret.compatibility ORDER BY 1, 2",
        "SELECT child_columns, parent_columns, confidence FROM coret.join_edge ORDER BY 1, 2",
    ]
    with psycopg.connect(demo_dsn, autocommit=True) as connection:
        before = [connection.execute(statement.encode()).fetchall() for statement in everything]
        with Coret(demo_dsn, workers=count) as coret:
            report = coret.refresh(full=True)
        assert all(step.done == 46 for step in report.steps.values())
        assert all(before)
        for statement, rows in zip(everything, before, strict=True):
            assert connection.execute(statement.encode()).fetchall() == rows
        steps = connection.execute(
            "SELECT done, skipped, total FROM coret.job_step WHERE job_id = %s", [report.job_id]
        ).fetchall()
        assert steps == [(46, 0, 46)] * len(STEPS)


def test_a_worker_that_fails_stops_the_others(
    demo_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(connection: psycopg.Connection, source: Any, table: Any) -> None:
        if table.table_name == "patients":
            raise RuntimeError("a fault of ours")
        profile_table(connection, source, table)

    with Coret(demo_dsn, workers=3) as coret:
        with monkeypatch.context() as patched:
            patched.setattr("coret_pg.offline.refresh.profile_table", failing)
            with pytest.raises(RuntimeError, match="a fault of ours"):
                coret.refresh(full=True)
        assert not [t for t in threading.enumerate() if t.name.startswith("coret refresh")]
        with psycopg.connect(demo_dsn) as connection:
            states = "SELECT state FROM coret.job ORDER BY job_id DESC LIMIT 1"
            assert one(connection, states) == "failed"
        report = coret.refresh()
        assert report.steps["snapshot"].done == 0
        assert 0 < report.steps["profile"].done <= 46
        assert report.steps["joins"].done == 46
        assert done(coret.refresh()) == NOTHING


def test_a_new_refresh_waits_for_workers_left_behind(
    demo_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coret_pg.offline.steps._LONGEST_WAIT_S", 1)
    with Coret(demo_dsn) as coret, psycopg.connect(demo_dsn, autocommit=True) as orphan:
        orphan.execute("SELECT pg_advisory_lock_shared(%s, %s)", _WORKER_LOCK)
        with pytest.raises(DatabaseError, match="still runs on the server"):
            coret.refresh()
        orphan.execute("SELECT pg_advisory_unlock_all()")
        assert coret.refresh().tables == 46
