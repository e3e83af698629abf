"""Compatibility equals a brute-force oracle: Python sets of values cast to text."""

from __future__ import annotations

import random
from itertools import combinations

import psycopg
import pytest
from psycopg import sql

from coret_pg import Coret
from coret_pg.offline.catalog import sync_catalog
from coret_pg.offline.compatibility import renew_compatibility, renew_inclusions
from coret_pg.offline.profile import profile_table
from coret_pg.offline.source import PoolTable, PostgresSource

# Family by the column's type in these pools; what isn't here is no key.
_FAMILY = {
    "smallint": "integer", "bigint": "integer", "numeric": "integer",
    "text": "text", "varchar(40)": "text", "char(8)": "text",
    "date": "date", "timestamp": "date", "uuid": "uuid",
}  # fmt: skip
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
        texts = [f"2020-01-{1 + n % 28:02d} 00:00:00" for n in numbers]
    elif kind == "uuid":
        texts = [f"00000000-0000-4000-8000-{n:012d}" for n in numbers]
    elif kind in ("boolean", "double precision"):
        texts = [str(n % 2) for n in numbers]
    else:
        texts = [_WORDS[n % len(_WORDS)] for n in numbers]
    share = rng.choice([0, 0, 0.1, 1])
    return [None if rng.random() < share else text for text in texts]


def _comparable(kind: str, text: str) -> str:
    """How a value compares, written independently of the SQL: by its text."""
    if kind == "numeric":
        return str(int(float(text)))
    if kind == "timestamp":
        return text.split(" ")[0]
    if kind == "char(8)":
        return text.rstrip(" ")
    return text


def _build_pool(
    connection: psycopg.Connection, rng: random.Random
) -> dict[tuple[str, str], tuple[str, list[str]]]:
    """Create some tables; return family and non-null comparable values by (table, column)."""
    columns: dict[tuple[str, str], tuple[str, list[str]]] = {}
    kinds = [*_FAMILY, "boolean", "double precision"]
    for number in range(rng.randint(4, 7)):
        table = f"t{number}"
        rows = rng.choice([0, 1, 3, 12, 60])
        chosen = [rng.choice(kinds) for _ in range(rng.randint(1, 5))]
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
            if kind in _FAMILY:
                known = [_comparable(kind, value) for value in values if value is not None]
                # A numeric or timestamp column with no value at all has nothing to be narrowed by.
                columns[table, f"c{i}"] = (_FAMILY[kind], known)
    return columns


def _oracle(
    columns: dict[tuple[str, str], tuple[str, list[str]]],
) -> dict[frozenset[tuple[str, str]], float]:
    """Pairs of columns that pass the gate, with the Jaccard of their distinct values."""
    passing = {}
    for a, b in combinations(columns, 2):
        (family_a, values_a), (family_b, values_b) = columns[a], columns[b]
        set_a, set_b = set(values_a), set(values_b)
        if a[0] == b[0] or family_a != family_b or not set_a or not set_b:
            continue
        unique = len(set_a) == len(values_a) or len(set_b) == len(values_b)
        if unique and (set_a <= set_b or set_b <= set_a):
            passing[frozenset((a, b))] = len(set_a & set_b) / len(set_a | set_b)
    return passing


def _profile_all(connection: psycopg.Connection, source: PostgresSource) -> list[int]:
    sync_catalog(connection, source)
    tables = connection.execute(
        "SELECT table_id, schema_name, table_name, kind, estimated_rows FROM coret.catalog_table"
    ).fetchall()
    for row in tables:
        profile_table(connection, source, PoolTable(*row))
    return [row[0] for row in tables]


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
                table_ids = _profile_all(connection, source)
                source.close()
                connection.execute("TRUNCATE coret.inclusion")
                todo = rng.sample(table_ids, len(table_ids))
                while todo:
                    # In batches of any size, and once in a while some of it again.
                    size = rng.randint(1, len(todo))
                    renew_inclusions(connection, todo[:size], todo)
                    todo = todo[size:]
                    if rng.random() < 0.3:
                        again = rng.sample(table_ids, 1)
                        renew_inclusions(connection, again, {*again, *todo})
                found = {
                    frozenset(((a, ca), (b, cb))): jaccard
                    for a, ca, b, cb, jaccard in connection.execute(_NAMED, [table_ids]).fetchall()
                }
                expected = _oracle(columns)
                assert found == pytest.approx(expected)
                passing += len(expected)
    assert passing > 0


def test_renewing_table_by_table_equals_all_at_once(demo_dsn: str) -> None:
    everything = "SELECT table_a, table_b, column_a, column_b, score, jaccard, header_similarity, a_in_b, b_in_a, cardinality FROM coret.compatibility"
    with psycopg.connect(demo_dsn, autocommit=True) as connection:
        ids = [row[0] for row in connection.execute("SELECT table_id FROM coret.catalog_table")]
        before = set(connection.execute(everything).fetchall())
        assert len(before) > 100
        connection.execute("DELETE FROM coret.compatibility")
        rng = random.Random(3)
        rng.shuffle(ids)
        inclusions = set(connection.execute("SELECT sub_column, sup_column FROM coret.inclusion"))
        connection.execute("DELETE FROM coret.inclusion WHERE random() < 0.5")
        for table_id in ids:
            renew_inclusions(connection, [table_id], [table_id])
        assert (
            set(connection.execute("SELECT sub_column, sup_column FROM coret.inclusion"))
            == inclusions
        )
        assert len(inclusions) > 40
        for position, table_id in enumerate(ids):
            renew_compatibility(connection, [table_id], ids[position + 1 :])
        assert set(connection.execute(everything).fetchall()) == before
        for table_id in ids[:9]:
            renew_compatibility(connection, [table_id])
        assert set(connection.execute(everything).fetchall()) == before
        connection.execute("DELETE FROM coret.compatibility")
        assert renew_compatibility(connection, ids) == len(before)
        assert set(connection.execute(everything).fetchall()) == before


def test_the_best_pair_and_its_score(dsn: str) -> None:
    with Coret(dsn) as coret, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA shop;"
            "CREATE TABLE shop.customer (customer_id int, name text);"
            "INSERT INTO shop.customer SELECT n, 'name ' || n FROM generate_series(1, 10) n;"
            "CREATE TABLE shop.orders (order_no int, customer_id int);"
            "INSERT INTO shop.orders SELECT n + 100, 1 + n % 8 FROM generate_series(1, 20) n"
        )
        coret.init()
        coret.refresh()
        row = connection.execute(
            "SELECT name_a, column_a, name_b, column_b, cardinality, jaccard, score, header_similarity"
            " FROM coret.compatible_pair"
        ).fetchall()
    assert len(row) == 1
    names = row[0][:5]
    jaccard, score, header = row[0][5:]
    assert names == ("shop.customer", "customer_id", "shop.orders", "customer_id", "1:N")
    assert jaccard == pytest.approx(8 / 10)
    assert score == pytest.approx(0.5 * jaccard + 0.5 * header)
    # Two words shared of {customer, id} and {orders, customer, id}, so the overlap is 1.
    assert 0.75 < header <= 1
