"""Profiles of columns against an oracle: exact ones, and sketches of big tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from coret_pg import Coret
from coret_pg.offline.source import PostgresSource

MICROSECOND = timedelta(microseconds=1)

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
# More rows than a small table has, and values that are easily told apart wrongly, or not at all.
AWKWARD = """
CREATE SCHEMA big;
CREATE TYPE big.mood AS ENUM ('sad', 'glad');
CREATE TABLE big.facts AS
SELECT n AS id, CASE WHEN n % 3 = 0 THEN n + 0.50 ELSE (n % 700)::numeric(20, 3) END AS amount,
       CASE WHEN n % 2 = 0 THEN (n / 2)::numeric ELSE ((n + 1) / 2)::numeric(12, 2) END AS whole_decimal,
       CASE n WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' ELSE n / 7.0 END AS not_a_number,
       CASE n WHEN 1 THEN 9223372036854775807 WHEN 2 THEN -9223372036854775808 ELSE n END AS far_apart,
       (n % 900 * 2)::smallint AS gaps, CASE WHEN n > 1 THEN NULL ELSE 5 END AS one,
       CASE n % 4 WHEN 0 THEN ' ä' WHEN 1 THEN 'Ä' WHEN 2 THEN 'a ' ELSE 'A' || n END AS letters,
       ('x' || n % 10)::char(9) AS padded, repeat('long ', 60) || n AS long, n::text::varchar AS digits,
       (CASE WHEN n % 2 = 0 THEN 'sad' ELSE 'glad' END)::big.mood AS mood, md5(n::text)::uuid AS key,
       CASE n WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' ELSE date '2000-01-01' + n % 5 END AS day,
       date '1999-12-01' + n AS days, timestamp '2020-01-01' + n * interval '1 day' AS midnight,
       CASE n WHEN 1 THEN 'infinity' WHEN 2 THEN '-infinity' WHEN 3 THEN timestamp '0044-03-15 BC 12:00:00.000001'
              ELSE timestamp '1899-12-31 23:59:59.999990' + n * interval '0.000003' END AS old_moment,
       timestamp '2039-12-31 23:59:59.990000' + n * interval '0.000007' AS late_moment,
       timestamptz '2024-02-29 22:00:00.123457+05:30' + n % 50 * interval '1 hour' AS zoned,
       n / 7::float8 AS float, n % 5 = 0 AS flag, ('{"n": ' || n || '}')::json AS document,
       CASE WHEN n < 0 THEN '' END AS nothing, CASE WHEN n < 0 THEN now()::date END AS no_day,
       CASE WHEN n < 0 THEN 1.5 END AS no_amount
FROM generate_series(1, 3000) AS n;
ANALYZE big.facts;
"""
# As texts that are equal where the values are.
AS_TEXT = {
    **dict.fromkeys(("amount", "whole_decimal", "not_a_number"), "trim_scale({})"),
    "zoned": "({} AT TIME ZONE 'UTC')",
}
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


def oracle_keys(connection: psycopg.Connection, kind: str | None, texts: set[str]) -> Iterator[int]:
    """Yield the key of each distinct value, given as Postgres writes it."""
    for text in texts:
        if kind == "integer":
            yield int(Decimal(text))
        elif text in ("infinity", "-infinity"):
            yield 2**63 - 1 if text == "infinity" else -(2**63)
        elif kind == "date":
            yield (date.fromisoformat(text[:10]) - date(2000, 1, 1)).days
        elif kind in ("timestamp", "timestamptz"):
            if text.endswith(" BC"):
                # Python's calendar ends with the year 1: the Gregorian one repeats after 400.
                moment = datetime.fromisoformat(f"{400 + 1 - int(text[:4]):04}{text[4:-3]}")
                yield (moment - datetime(1970, 1, 1)) // MICROSECOND - 146_097 * 86_400_000_000
            else:
                yield (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // MICROSECOND
        elif kind:
            row = connection.execute("SELECT hashtextextended(%s, 0)", [text]).fetchone()
            assert row
            yield row[0]


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
    # Those that repeat most, the least of equal ones first; where they occur less than twice on
    # average, some of the first rows, of numbers the least.
    assert found["few"]["frequent"] == ["1", "2", "3", "4", "5"]
    assert found["day"]["frequent"] == [
        "2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04", "2020-01-05",
    ]  # fmt: skip
    assert found["name"]["frequent"] == ["Name 1", "Name 10", "Name 11", "Name 12", "Name 13"]
    assert found["code"]["frequent"] == ["code 1", "code 10", "code 11", "code 12", "code 13"]
    assert found["id"]["frequent"] == ["1"]
    assert found["nothing"]["frequent"] == []


def test_facts_are_those_of_an_oracle(dsn: str) -> None:
    """Counts, extremes and keys of awkward values, worked out anew in Python."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(AWKWARD.encode())
        columns = [
            row[0]
            for row in connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = 'big.facts'::regclass AND attnum > 0"
            )
        ]
        rows = connection.execute(
            "SELECT {} FROM big.facts".format(
                ", ".join(f"{AS_TEXT.get(name, '{}').format(name)}::text" for name in columns)
            ).encode()
        ).fetchall()
    with Coret(dsn) as coret:
        coret.init()
    found = profile(dsn)
    assert set(found) == set(columns)
    with psycopg.connect(dsn) as connection:
        for name, values in zip(columns, zip(*rows, strict=True), strict=True):
            f = found[name]
            there = [value for value in values if value is not None]
            keys = sorted(oracle_keys(connection, f["kind"], set(there)))
            assert (f["rows"], f["nulls"], f["distinct"]) == (
                len(values), len(values) - len(there), len(set(there)),
            ), name  # fmt: skip
            assert f["unique"] == (0 < len(set(there)) == len(there)), name
            if f["kind"] is None:
                assert (f["keys"], f["least_key"], f["greatest_key"]) == (None, None, None)
                continue
            assert (f["least_key"], f["greatest_key"]) == (
                (keys[0], keys[-1]) if keys else (None, None)
            ), name
            is_interval = bool(keys) and keys == list(range(keys[0], keys[0] + len(keys)))
            assert bool(f["interval"]) == (is_interval and f["kind"] in ("integer", "date")), name
            assert f["keys"] == (None if f["interval"] or not keys else keys), name
            if f["kind"] in ("text", "uuid") and there:
                assert (f["least"], f["greatest"]) == (min(there)[:200], max(there)[:200]), name
    assert {f["kind"] for f in found.values()} == {
        "integer", "decimal", "text", "uuid", "date", "timestamp", "timestamptz", None,
    }  # fmt: skip


@pytest.mark.parametrize("guess", [True, False])
@pytest.mark.parametrize("made", ["TABLE", "AWKWARD"])
def test_facts_do_not_hang_on_the_way_they_are_read(
    dsn: str, monkeypatch: pytest.MonkeyPatch, made: str, guess: bool
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(globals()[made].encode())
    with Coret(dsn) as coret:
        coret.init()
    by_statistics = profile(dsn)
    monkeypatch.setattr(PostgresSource, "_is_mostly_distinct", lambda *_: guess)
    assert profile(dsn) == by_statistics


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
