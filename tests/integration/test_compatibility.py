"""The compatibility of two tables: its score, and that any refreshes come to what a full one does."""

from __future__ import annotations

import random
import re

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg import sql

from coret_pg import Coret
from coret_pg.offline.compatibility import renew_compatibility, renew_inclusions


def test_the_score(demo_dsn: str) -> None:
    """What is computed for the demo's tables, from the words and vectors of their headers."""
    with psycopg.connect(demo_dsn) as connection:
        ids = [r[0] for r in connection.execute("SELECT table_id FROM coret.catalog_table")]
        headers = {
            row[0]: (f"{row[1]} {row[2]}", np.array(row[3]), row[4])
            for row in connection.execute(
                "SELECT c.column_id, t.table_name, c.column_name, e.embedding::real[], p.distinct_count"
                " FROM coret.catalog_column c JOIN coret.catalog_table t USING (table_id)"
                " JOIN coret.column_embedding e USING (column_id) JOIN coret.column_profile p USING (column_id)"
            )
        }

        def score(a: int, b: int) -> float:
            (name_a, vector_a, count_a), (name_b, vector_b, count_b) = headers[a], headers[b]
            words_a, words_b = (
                set(re.split(r"[_.\s]+", name.lower())) - {""} for name in (name_a, name_b)
            )
            cosine = float(
                vector_a @ vector_b / np.linalg.norm(vector_a) / np.linalg.norm(vector_b)
            )
            overlap = len(words_a & words_b) / min(len(words_a), len(words_b))
            jaccard = min(count_a, count_b) / max(count_a, count_b)
            return 0.5 * jaccard + 0.5 * (0.5 * min(1, max(0, cosine)) + 0.5 * overlap)

        pairs = connection.execute(
            "SELECT sub_column, sup_column, score, sub_table, sup_table FROM coret.scored_pairs(%s)",
            [ids],
        ).fetchall()
        assert len(pairs) > 500
        best: dict[tuple[int, int], float] = {}
        for a, b, stored, *tables in pairs:
            assert stored == pytest.approx(score(a, b), abs=1e-5)
            key = (min(tables), max(tables))
            best[key] = max(best.get(key, 0), stored)
        # Of two tables the best pair; stored from the floor up; computed for any few tables.
        everything = connection.execute(
            "SELECT table_a, table_b, score FROM coret.compatible_among(%s)", [ids]
        ).fetchall()
        assert {(a, b): s for a, b, s in everything} == best
        stored = connection.execute("SELECT table_a, table_b, score FROM coret.compatibility")
        assert {(a, b): s for a, b, s in stored} == {k: s for k, s in best.items() if s >= 0.4}
        few = ids[::4]
        among = connection.execute(
            "SELECT table_a, table_b, score FROM coret.compatible_among(%s)", [few]
        ).fetchall()
        assert {(a, b): s for a, b, s in among} == {
            k: s for k, s in best.items() if set(k) <= set(few)
        }


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
