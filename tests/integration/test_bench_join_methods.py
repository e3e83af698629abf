"""The benchmark's methods find the same pairs as we do, on a small pool."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from bench.join_discovery import ours, pools, sets
from bench.join_discovery.__main__ import disagreements
from bench.join_discovery.measure import Measured, Meter, ServerProcesses
from bench.join_discovery.process import Method, Pool
from coret_pg import Coret


@pytest.fixture
def pool(dsn: str, tmp_path: Path) -> Pool:
    with Coret(dsn) as coret:
        coret.init()
    with psycopg.connect(dsn, autocommit=True) as connection:
        pools.build_pool(connection, pools.plan_pool(20, seed=5))
        postmaster = ServerProcesses.of(connection).postmaster
    return Pool(20, dsn, postmaster, tmp_path, seed=5, sample=200)


def _run(method: Method, pool: Pool) -> Measured:
    meter = Meter(ServerProcesses(pool.postmaster))
    measured = Measured(method.__name__, pool.tables)
    method(pool, meter, measured)
    measured.stages = meter.stages
    return measured


def test_ours_finds_what_sets_and_the_reference_find(pool: Pool) -> None:
    found = _run(ours.run, pool)
    assert found.pairs
    assert [stage.name for stage in found.stages] == [*ours.UP_TO_VERIFICATION, "scoring"]
    assert all(stage.server_cpu >= 0 for stage in found.stages)
    by_sets = _run(sets.run_sets, pool)
    assert (by_sets.pairs, by_sets.fingerprint) == (found.pairs, found.fingerprint)
    reference = _run(sets.run_reference, pool)
    assert any(passed for _, _, passed in reference.verdicts)
    assert disagreements(found, reference, pool.dsn) == []


def test_a_method_that_finds_other_pairs_is_told(pool: Pool) -> None:
    found = _run(ours.run, pool)
    other = Measured("other", 20, pairs=found.pairs, fingerprint=0)
    assert disagreements(found, other, pool.dsn) == [
        f"20 tables, other: {found.pairs} pairs, not the same as ours ({found.pairs})"
    ]
    low, high = 1, 2
    assert disagreements(found, Measured("sampled", 20, verdicts=[(low, high, True)]), pool.dsn)
