"""Profiles of columns against an oracle: exact ones, and sketches of big tables."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from coret_pg import Coret

# Every kind of column, some values repeated, some missing.
TABLE = """
CREATE SCHEMA big;
CREATE TABLE big.facts AS
SELECT n AS id, 1 + n % 50 AS few, 1 + n * 7919 % 9000 AS many, 'code ' || n AS code, 'Name ' || n % 8000 AS name,
       date '2020-01-01' + n % 4000 AS day, timestamp '2020-01-01' + n * interval '1 minute' AS moment,
       n / 3.0 AS share, CASE WHEN n % 10 > 0 THEN n END AS gaps, n % 2 = 0 AS flag, NULL::text AS nothing,
       ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid AS key
FROM generate_series(1, 12000) AS n;
ANALYZE big.facts;
"""
FACTS = """
SELECT column_name, row_count, null_count, distinct_count, is_unique, is_interval, min_value, max_value, min_key, max_key,
       key_kind, sample_shift, k.keys, frequent_values
FROM coret.catalog_column JOIN coret.catalog_table USING (table_id) JOIN coret.column_profile USING (column_id)
LEFT JOIN coret.column_keys AS k USING (column_id)
WHERE table_name = 'facts'
"""
NAMES = (  # noqa: SIM905
    "name rows nulls distinct unique interval least greatest least_key greatest_key kind shift keys frequent"
).split()


def profile(dsn: str, **settings: Any) -> dict[str, dict[str, Any]]:
    with Coret(dsn, **settings) as coret, coret.connection() as connection:
        coret.refresh(full=True)
        rows = connection.execute(FACTS).fetchall()
    return {row[0]: dict(zip(NAMES, row, strict=True)) for row in rows}


@pytest.fixture
def facts_dsn(dsn: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TABLE)
    with Coret(dsn) as coret:
        coret.init()
    return dsn


@pytest.fixture
def small_sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sketches of a few hundred keys, of columns with more than 500 values."""
    monkeypatch.setattr("coret_pg.offline.column_facts._SKETCH_KEYS", 512)
    monkeypatch.setattr("coret_pg.offline.column_facts._FEW_VALUES", 500)


def test_exact_facts(facts_dsn: str) -> None:
    found = profile(facts_dsn)
    assert {f["shift"] for f in found.values()} == {0}
    counts = {
        name: (f["rows"], f["nulls"], f["distinct"], f["unique"]) for name, f in found.items()
    }
    assert counts == {
        "id": (12000, 0, 12000, True), "few": (12000, 0, 50, False),
        "many": (12000, 0, 9000, False), "code": (12000, 0, 12000, True),
        "name": (12000, 0, 8000, False), "day": (12000, 0, 4000, False),
        "moment": (12000, 0, 12000, True), "share": (12000, 0, 12000, True),
        "gaps": (12000, 1200, 10800, True), "flag": (12000, 0, 2, False),
        "nothing": (12000, 12000, 0, False), "key": (12000, 0, 12000, True),
    }  # fmt: skip
    assert {name for name, f in found.items() if f["interval"]} == {"id", "few", "many", "day"}
    assert {name for name, f in found.items() if f["keys"] is None} == {
        "id", "few", "many", "day", "flag", "nothing",
    }  # fmt: skip
    assert found["gaps"]["keys"] == [n for n in range(1, 12001) if n % 10]
    assert (found["id"]["least_key"], found["id"]["greatest_key"]) == (1, 12000)
    assert (found["day"]["least"], found["day"]["greatest"]) == ("2020-01-01", "2030-12-13")
    assert found["day"]["greatest_key"] - found["day"]["least_key"] == 3999
    # Those that repeat most, the least of equal ones first; else the least, of numbers one.
    assert found["few"]["frequent"] == ["1", "2", "3", "4", "5"]
    assert found["name"]["frequent"][:2] == ["Name 1", "Name 10"]
    assert found["code"]["frequent"] == [
        "code 1", "code 10", "code 100", "code 1000", "code 10000",
    ]  # fmt: skip
    assert found["id"]["frequent"] == ["1"]
    assert found["nothing"]["frequent"] == []


@pytest.mark.usefixtures("small_sketches")
def test_sketches_keep_the_keys_whose_hash_says_so(facts_dsn: str) -> None:
    exact = profile(facts_dsn)
    sketched = profile(facts_dsn, sketch_rows=10_000)
    with psycopg.connect(facts_dsn) as connection:

        def sampled(keys: list[int], shift: int) -> list[int]:
            rows = connection.execute(
                "SELECT key FROM unnest(%s::bigint[]) AS key WHERE abs(hashint8extended(key, 0) %% (1 << %s)) = 0 ORDER BY 1",
                [keys, shift],
            )
            return [row[0] for row in rows]

        for name, f in sketched.items():
            whole = exact[name]
            for same in ("rows", "nulls", "unique", "kind", "least", "greatest"):
                assert f[same] == whole[same], (name, same)
            if f["kind"]:
                assert (f["least_key"], f["greatest_key"]) == (
                    whole["least_key"], whole["greatest_key"],
                )  # fmt: skip
            if whole["distinct"] <= 50:
                assert (f["shift"], f["distinct"]) == (0, whole["distinct"])
                continue
            assert f["shift"] == 5
            if f["unique"]:
                assert f["distinct"] == whole["distinct"]
            else:
                assert f["distinct"] == pytest.approx(whole["distinct"], rel=0.35)
            if whole["keys"] is not None:
                assert f["keys"] == sampled(whole["keys"], 5)
                assert 100 < len(f["keys"]) < 1000
    # What is unique is known to be an interval or not; what isn't, is only estimated.
    assert {name for name, f in sketched.items() if f["interval"]} == {"id", "few"}


@pytest.mark.usefixtures("small_sketches")
def test_a_big_table_is_read_whole_when_asked_for(facts_dsn: str) -> None:
    with Coret(facts_dsn, sketch_rows=10_000) as coret, coret.connection() as connection:
        shifts = "SELECT max(sample_shift) FROM coret.column_profile"
        coret.refresh()
        assert connection.execute(shifts).fetchone() == (5,)
        coret.refresh(read_whole=["big.facts"])
        assert connection.execute(shifts).fetchone() == (0,)
        # It stays so, until that is taken back.
        coret.refresh(full=True)
        assert connection.execute(shifts).fetchone() == (0,)
        connection.execute("SELECT coret.read_whole('big.facts', false)")
        coret.refresh()
        assert connection.execute(shifts).fetchone() == (5,)
