"""Compatibility equals a brute-force oracle: Python sets of values cast to text."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
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
                    renew_inclusions(connection, todo[:size], table_ids)
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


# A table as it is to be: its columns by name, each of one type and with some values.
_INTEGERS = st.one_of(
    st.builds(lambda start, count: list(range(start, start + count)), st.integers(0, 3), st.integers(0, 9)),
    st.lists(st.integers(0, 9), max_size=9),
)  # fmt: skip
_COLUMN = st.one_of(
    st.tuples(st.just("integer"), _INTEGERS),
    st.tuples(st.just("text"), st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=9)),
)
_TABLE = st.dictionaries(st.sampled_from(["id", "code", "owner_id"]), _COLUMN, min_size=1)
_NUMBER = st.integers(0, 5)
_CHANGE = st.one_of(
    st.tuples(st.just("make"), _NUMBER, _TABLE),
    st.tuples(st.just("drop"), _NUMBER, st.just({})),
    st.tuples(st.just("rename"), _NUMBER, st.just({})),
    st.tuples(st.just("rename column"), _NUMBER, st.just({})),
    st.tuples(st.just("drop column"), _NUMBER, st.just({})),
    st.tuples(st.just("refill"), _NUMBER, st.just({})),
)


def _change(
    connection: psycopg.Connection,
    kind: str,
    number: int,
    made: dict[str, tuple[str, list[object]]],
) -> None:
    """Change one table of the pool, if it is there; its name may be a later one."""
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pool'::regnamespace AND relkind = 'r' ORDER BY relname OFFSET %s LIMIT 1",
        [number],
    ).fetchone()
    if kind == "make":
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_name))  # type: ignore[arg-type]
            for name, (type_name, _) in made.items()
        )
        table = sql.Identifier("pool", f"made_{number}")
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, columns))
        for name, (_, values) in made.items():
            for value in values:
                connection.execute(
                    sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                        table, sql.Identifier(name), sql.Literal(value)
                    )
                )
        return
    if found is None:
        return
    table = sql.Identifier("pool", found[0])
    columns_left = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = format('pool.%%I', %s::text)::regclass AND attnum > 0 AND NOT attisdropped",
        [found[0]],
    ).fetchall()
    if kind == "drop":
        connection.execute(sql.SQL("DROP TABLE {}").format(table))
    elif kind == "rename":
        connection.execute(
            sql.SQL("ALTER TABLE {} RENAME TO {}").format(table, sql.Identifier(f"{found[0]}_old"))
        )
    elif kind == "refill":
        # In another file: statistics of changed rows arrive late.
        connection.execute(
            sql.SQL(
                "CREATE TEMP TABLE kept AS SELECT * FROM {table}; TRUNCATE {table};"
                "INSERT INTO {table} SELECT * FROM kept LIMIT 2; DROP TABLE kept"
            ).format(table=table)
        )
    elif kind == "rename column" and columns_left:
        connection.execute(
            sql.SQL("ALTER TABLE {} RENAME {} TO {}").format(
                table, sql.Identifier(columns_left[0][0]), sql.Identifier(f"{columns_left[0][0]}_x")
            )
        )
    elif kind == "drop column" and len(columns_left) > 1:
        connection.execute(
            sql.SQL("ALTER TABLE {} DROP {}").format(table, sql.Identifier(columns_left[0][0]))
        )


_STORED = """
SELECT 'inclusion', sub_column, sup_column, NULL, NULL, NULL, NULL FROM coret.inclusion
UNION ALL SELECT 'score', table_a, table_b, column_a, column_b, score, jaccard FROM coret.compatibility
"""


@settings(
    max_examples=12,
    deadline=None,
    # Not shrunk: that would take longer than the test may.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(_TABLE, min_size=3, max_size=6),
    st.lists(st.lists(_CHANGE, min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_any_refreshes_come_to_what_a_full_one_does(
    dsn: str,
    tables: list[dict[str, tuple[str, list[object]]]],
    changes: list[list[tuple[str, int, dict[str, tuple[str, list[object]]]]]],
) -> None:
    with (
        Coret(dsn) as coret,
        psycopg.connect(dsn, autocommit=True) as connection,
        pytest.MonkeyPatch.context() as patched,
    ):
        # Several batches, two at a time.
        patched.setattr("coret_pg.offline.refresh._INCLUSION_BATCH", 2)
        patched.setattr("coret_pg.offline.refresh._COMPATIBILITY_BATCH", 2)
        coret.init()
        connection.execute("DROP SCHEMA IF EXISTS pool CASCADE; CREATE SCHEMA pool")
        # So that the pool is never empty.
        connection.execute("CREATE TABLE pool.zz AS SELECT 1 AS id")
        for number, table in enumerate(tables):
            _change(connection, "make", number, table)
        coret.refresh()
        for some in changes:
            for kind, number, made in some:
                _change(connection, kind, number, made)
            coret.refresh()
        renewed = set(connection.execute(_STORED).fetchall())
        connection.execute("TRUNCATE coret.inclusion, coret.compatibility")
        coret.refresh(full=True)
        assert renewed == set(connection.execute(_STORED).fetchall())


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
        table_ids = _profile_all(connection, source)
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


def _as_loaded(type_name: str, value: object) -> object:
    """A value of a SQLite file as it compares once it is loaded as a type."""
    if type_name == "bigint":
        return int(str(value))
    if type_name.startswith("numeric"):
        number = Decimal(str(value))
        return int(number) if number == int(number) else number.normalize()
    return str(value)


def test_spider_dev_equals_sets_read_from_its_files(dsn: str, bench_data: Path) -> None:
    folder = bench_data / "spider" / "databases" / "dev"
    with Coret(dsn) as coret, psycopg.connect(dsn) as connection:
        coret.load(folder, keys=False)
        coret.init()
        with coret.database.session(autocommit=True) as session:
            source = PostgresSource(coret.database, 1)
            table_ids = _profile_all(session, source)
            source.close()
            renew_inclusions(session, table_ids, table_ids)
        loaded = connection.execute(
            "SELECT schema_name, table_name, column_name, type_name, type_family, column_id"
            " FROM coret.catalog_column JOIN coret.catalog_table USING (table_id) WHERE type_family IS NOT NULL"
        ).fetchall()
        found = {
            frozenset(pair): jaccard
            for *pair, jaccard in connection.execute(
                "SELECT sub_column, sup_column, jaccard FROM coret.scored_pairs(%s)", [table_ids]
            )
        }
    columns = {}
    for schema, table, column, type_name, family, column_id in loaded:
        with closing(sqlite3.connect(folder / f"{schema}.sqlite")) as file:
            file.text_factory = lambda text: text.decode("utf-8", "replace")
            rows = file.execute(f'SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL')
            values = [_as_loaded(type_name, value) for (value,) in rows]
        if family == "decimal" and all(isinstance(value, int) for value in values):
            family = "integer"
        columns[column_id] = ((schema, table), family, values, set(values))
    expected = {}
    for (a, (table_a, family_a, list_a, set_a)), (
        b,
        (table_b, family_b, list_b, set_b),
    ) in combinations(columns.items(), 2):
        if table_a == table_b or family_a != family_b or not set_a or not set_b:
            continue
        unique = len(set_a) == len(list_a) or len(set_b) == len(list_b)
        if unique and (set_a <= set_b or set_b <= set_a):
            expected[frozenset((a, b))] = len(set_a & set_b) / len(set_a | set_b)
    assert len(expected) > 2_000
    assert found == pytest.approx(expected)
