"""The gate finds what Python's sets of the values do: of every kind, in any batches, by sketches."""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Sequence
from contextlib import closing
from decimal import Decimal

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from coret_pg import Coret
from coret_pg.offline.compatibility import renew_inclusions
from coret_pg.offline.source import PostgresSource
from tests.pools import KeyColumn, passing_pairs, profile_all

# Few values of each kind, as Postgres reads them, so that sets often include each other.
_NUMBERS = ["0", "1", "2", "3", "-1"]
_VALUES = {
    "smallint": [*_NUMBERS, "32767"],
    "integer": [*_NUMBERS, "32767"],
    "bigint": [*_NUMBERS, "9223372036854775807", "-9223372036854775808"],
    "numeric": ["0", "1", "1.0", "2.00", "3", "1.5", "1.50", "NaN", "-0.0", "9000000000000000001"],
    "text": ["a", "A", "a ", " a", "", "é", "e\u0301", "1", "01", "%s", "日本", "\\N"],
    "varchar(9)": ["a", "A", "a ", "é", "1"],
    "char(4)": ["a", "a  ", "A", "1", ""],
    "date": ["2020-01-01", "2020-01-02", "2020-01-03", "infinity", "-infinity"],
    "timestamp": ["2020-01-01", "2020-01-02 00:00", "2020-01-03", "2020-01-02 12:00", "infinity"],
    "timestamptz": ["2020-01-01 00:00+00", "2020-01-01 02:00+02", "2020-01-02 00:00+00"],
    "uuid": ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000A", "00000000-0000-4000-8000-00000000000b"],
    "boolean": ["t", "f"],
    "double precision": ["1", "1.0", "NaN"],
    "json": ["1", "{}"],
}  # fmt: skip
_MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\d( 00:00)?")

_COLUMN = st.sampled_from(list(_VALUES)).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.lists(st.one_of(st.none(), st.sampled_from(_VALUES[kind])), max_size=6),
    )
)


def _comparable(kind: str, texts: Sequence[str]) -> tuple[str, list[Hashable]] | None:
    """The family of a column's values and the values as they compare; None for what is no key."""
    if kind in ("smallint", "integer", "bigint"):
        return "integer", [int(text) for text in texts]
    if kind == "numeric":
        numbers = [Decimal(text) for text in texts]
        whole = all(n.is_finite() and n == int(n) and abs(n) < 9 * 10**18 for n in numbers)
        if numbers and whole:
            return "integer", [int(n) for n in numbers]
        return "decimal", ["NaN" if n.is_nan() else str(n.normalize() + 0) for n in numbers]
    if kind in ("text", "varchar(9)"):
        return "text", list(texts)
    if kind == "char(4)":
        return "text", [text.rstrip(" ") for text in texts]
    if kind == "date":
        return "date", list(texts)
    if kind == "timestamp":
        if texts and all(_MIDNIGHT.fullmatch(text) for text in texts):
            return "date", [text[:10] for text in texts]
        return "timestamp", [
            text if len(text) > 10 or "inf" in text else f"{text} 00:00" for text in texts
        ]
    if kind == "timestamptz":
        return "timestamptz", [text.replace("02:00+02", "00:00+00") for text in texts]
    if kind == "uuid":
        return "uuid", [text.lower() for text in texts]
    return None


@pytest.fixture
def coret(dsn: str):
    with Coret(dsn) as coret:
        coret.init()
        yield coret


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_COLUMN, min_size=2, max_size=6))
def test_the_gate(coret: Coret, columns: list[tuple[str, list[str | None]]]) -> None:
    with coret.connection() as connection, closing(PostgresSource(coret.database, 1)) as source:
        connection.execute("DROP SCHEMA IF EXISTS pool CASCADE; CREATE SCHEMA pool")
        for number, (kind, values) in enumerate(columns):
            table = sql.Identifier("pool", f"t{number}")
            connection.execute(
                sql.SQL("CREATE TABLE {} (c {})").format(table, sql.SQL(kind))  # type: ignore[arg-type]
            )
            with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
                for value in values:
                    copy.write_row((value,))
        ids = profile_all(connection, source)
        renew_inclusions(connection, ids, ids)
        found = connection.execute(
            "SELECT a.n, b.n, p.jaccard FROM coret.scored_pairs(%s) AS p"
            " JOIN (SELECT table_id, substr(table_name, 2)::int FROM coret.catalog_table) AS a(table_id, n) ON a.table_id = p.sub_table"
            " JOIN (SELECT table_id, substr(table_name, 2)::int FROM coret.catalog_table) AS b(table_id, n) ON b.table_id = p.sup_table",
            [ids],
        ).fetchall()
    known = [_comparable(kind, [v for v in values if v is not None]) for kind, values in columns]
    keys = {n: KeyColumn(n, *one) for n, one in enumerate(known) if one is not None}
    assert {frozenset((a, b)): jaccard for a, b, jaccard in found} == pytest.approx(
        passing_pairs(keys)
    )


# Kinds of the pools below; the last two are no keys.
_KINDS = [
    "smallint", "bigint", "numeric", "text", "varchar(9)", "char(4)", "date", "timestamp", "uuid",
    "boolean", "double precision",
]  # fmt: skip
_WORDS = [
    "a",
    "A",
    "b",
    " b",
    "b ",
    "ab",
    "",
    "é",
    "e\u0301",
    "日本",
    "x'y",
    'q"q',
    "1",
    "01",
    "zz",
    "%s",
]


def _values(rng: random.Random, kind: str, rows: int) -> list[str | None]:
    """Random values, some NULL, as texts Postgres reads; few distinct, so that sets include each other."""
    start = rng.choice([0, 1, 1, 1, 5])
    width = rng.choice([1, 2, 5, 12, 40])
    if rng.random() < 0.4:
        numbers = list(range(start, start + rows))
    else:
        numbers = [start + rng.randrange(width) * rng.choice([1, 1, 2]) for _ in range(rows)]
    texts: list[str | None]
    if kind in ("smallint", "bigint"):
        texts = [str(n - 3 if rng.random() < 0.02 else n) for n in numbers]
    elif kind == "numeric":
        texts = [f"{n}.0" if rng.random() < 0.3 else str(n) for n in numbers]
    elif kind == "date":
        texts = [f"2020-01-{1 + n % 28:02d}" for n in numbers]
    elif kind == "timestamp":
        texts = [f"2020-01-{1 + n % 28:02d} 00:00" for n in numbers]
    elif kind == "uuid":
        texts = [f"00000000-0000-4000-8000-{n:012d}" for n in numbers]
    elif kind in ("boolean", "double precision"):
        texts = [str(n % 2) for n in numbers]
    else:
        texts = [_WORDS[n % len(_WORDS)] for n in numbers]
    share = rng.choice([0, 0, 0.1, 1])
    return [None if rng.random() < share else text for text in texts]


def _build_pool(
    connection: psycopg.Connection, rng: random.Random
) -> dict[tuple[str, str], KeyColumn]:
    """Create some tables; return family and non-null comparable values by (table, column)."""
    columns: dict[tuple[str, str], KeyColumn] = {}
    for number in range(rng.randint(4, 7)):
        table = f"t{number}"
        rows = rng.choice([0, 1, 3, 12, 60])
        chosen = [rng.choice(_KINDS) for _ in range(rng.randint(1, 5))]
        data = [_values(rng, kind, rows) for kind in chosen]
        connection.execute(
            sql.SQL("CREATE TABLE pool.{} ({})").format(
                sql.Identifier(table),
                sql.SQL(", ").join(
                    sql.SQL("{} {}").format(sql.Identifier(f"c{i}"), sql.SQL(kind))  # type: ignore[arg-type]
                    for i, kind in enumerate(chosen)
                ),
            )
        )
        with connection.cursor().copy(
            sql.SQL("COPY pool.{} FROM STDIN").format(sql.Identifier(table))
        ) as copy:
            for row in zip(*data, strict=True):
                copy.write_row(row)
        for i, (kind, values) in enumerate(zip(chosen, data, strict=True)):
            known = _comparable(kind, [value for value in values if value is not None])
            if known is not None:
                columns[table, f"c{i}"] = KeyColumn(table, *known)
    return columns


_NAMED = """
SELECT ta.table_name, ca.column_name, tb.table_name, cb.column_name, i.jaccard
FROM coret.scored_pairs(%s) AS i
JOIN coret.catalog_column ca ON ca.column_id = i.sub_column JOIN coret.catalog_table ta ON ta.table_id = ca.table_id
JOIN coret.catalog_column cb ON cb.column_id = i.sup_column JOIN coret.catalog_table tb ON tb.table_id = cb.table_id
"""


@pytest.mark.parametrize("seed", range(12))
def test_the_gate_equals_brute_force(dsn: str, seed: int) -> None:
    rng = random.Random(seed)
    with Coret(dsn) as coret:
        coret.init()
        with coret.database.session(autocommit=True) as connection:
            passing = 0
            for _ in range(6):
                connection.execute("DROP SCHEMA IF EXISTS pool CASCADE; CREATE SCHEMA pool")
                columns = _build_pool(connection, rng)
                source = PostgresSource(coret.database, 1)
                table_ids = profile_all(connection, source)
                source.close()
                connection.execute("TRUNCATE coret.inclusion")
                todo = rng.sample(table_ids, len(table_ids))
                while todo:
                    # In batches of any size, and once in a while some of it again.
                    size = rng.randint(1, len(todo))
                    renew_inclusions(connection, todo[:size], table_ids)
                    todo = todo[size:]
                    if rng.random() < 0.3:
                        again = rng.sample(table_ids, 1)
                        renew_inclusions(connection, again, {*again, *todo})
                found = {
                    frozenset(((a, ca), (b, cb))): jaccard
                    for a, ca, b, cb, jaccard in connection.execute(_NAMED, [table_ids]).fetchall()
                }
                expected = passing_pairs(columns)
                assert found == pytest.approx(expected)
                passing += len(expected)
    assert passing > 0


_SKETCH = """
WITH sketched AS (
    UPDATE coret.column_profile SET sample_shift = %(shift)s
    WHERE column_id = %(column_id)s AND NOT is_interval RETURNING column_id
)
UPDATE coret.column_keys AS k
SET keys = array(SELECT key FROM unnest(k.keys) AS key
                 WHERE hashint8extended(key, 0) & ((1::bigint << %(shift)s) - 1) = 0 ORDER BY key)
FROM sketched AS s WHERE s.column_id = k.column_id
"""


def test_sketches_find_what_all_keys_do(dsn: str) -> None:
    rng = random.Random(8)
    pairs = "SELECT sub_column, sup_column, jaccard, is_sampled FROM coret.scored_pairs(%s)"
    with Coret(dsn) as coret, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA pool")
        for number in range(36):
            # Multiples: of a set that isn't inside another a half at least is missing there.
            step, count = rng.choice([1, 1, 2, 4, 8, 3, 6]), rng.choice([60, 200, 800, 1500])
            value = rng.choice(["n", "'v' || n", "n / 2.0"])
            repeats = rng.choice([1, 1, 2])
            connection.execute(
                f"CREATE TABLE pool.t{number} AS SELECT {value} AS c"
                f" FROM generate_series({step}, {step * count}, {step}) n, generate_series(1, {repeats})"
            )
        coret.init()
        source = PostgresSource(coret.database, 1)
        table_ids = profile_all(connection, source)
        source.close()
        renew_inclusions(connection, table_ids, table_ids)
        exact = connection.execute(pairs, [table_ids]).fetchall()
        columns = [r[0] for r in connection.execute("SELECT column_id FROM coret.column_profile")]
        some = rng.sample(columns, 22)
        for column_id in some:
            connection.execute(_SKETCH, {"column_id": column_id, "shift": rng.randint(1, 3)})
        sketched = {
            r[0]
            for r in connection.execute(
                "SELECT column_id FROM coret.column_profile WHERE sample_shift > 0"
            )
        }
        renew_inclusions(connection, table_ids, table_ids)
        found = connection.execute(pairs, [table_ids]).fetchall()
    assert len(exact) > 60
    assert not any(row[3] for row in exact)
    assert sum(row[3] for row in found) > 20
    assert set(found) == {
        (sub, sup, jaccard, not sketched.isdisjoint((sub, sup))) for sub, sup, jaccard, _ in exact
    }


def test_sketches_include_what_whole_columns_do(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coret_pg.offline.column_facts._SKETCH_KEYS", 256)
    monkeypatch.setattr("coret_pg.offline.column_facts._FEW_VALUES", 100)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA big;"
            "CREATE TABLE big.codes AS SELECT 'c' || n AS code FROM generate_series(1, 8000) n;"
            "CREATE TABLE big.uses AS SELECT 'c' || 1 + n * 7919 % 6000 AS code FROM generate_series(1, 9000) n;"
            "CREATE TABLE big.others AS SELECT 'x' || n AS code FROM generate_series(1, 8000) n;"
            "CREATE TABLE big.nearly AS SELECT CASE WHEN n % 10 = 0 THEN 'y' ELSE 'c' END || n AS code FROM generate_series(1, 7000) n;"
            "CREATE TABLE big.few AS SELECT 'c' || n AS code FROM generate_series(1, 3) n;"
            "CREATE TABLE big.odd AS SELECT n * 2 AS number FROM generate_series(1, 8000) n;"
            "CREATE TABLE big.even AS SELECT n * 4 AS number FROM generate_series(1, 4000) n;"
            "ANALYZE"
        )
        pairs = "SELECT a.table_name, b.table_name, p.is_sampled FROM coret.scored_pairs(array(SELECT table_id FROM coret.catalog_table)) p JOIN coret.catalog_table a ON a.table_id = p.sub_table JOIN coret.catalog_table b ON b.table_id = p.sup_table ORDER BY 1, 2"
        with Coret(dsn) as coret:
            coret.init()
            coret.refresh()
            whole = connection.execute(pairs).fetchall()
        with Coret(dsn, sketch_rows=5_000) as coret:
            coret.refresh(full=True)
            sketched = connection.execute(pairs).fetchall()
    assert whole == [
        ("even", "odd", False), ("few", "codes", False), ("few", "nearly", False),
        ("few", "uses", False), ("uses", "codes", False),
    ]  # fmt: skip
    # Of three values none may be in the sample: that they are included can't be proved.
    assert sketched == [("even", "odd", True), ("uses", "codes", True)]
