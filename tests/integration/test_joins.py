"""Joins with a confidence: what is found, what people decide, paths, and renewal by parts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import sql

from coret_pg import Coret
from coret_pg.errors import InputError
from coret_pg.offline.catalog import sync_catalog
from coret_pg.offline.compatibility import renew_compatibility, renew_inclusions
from coret_pg.offline.joins import prepare_names, renew_joins, weigh_joins
from coret_pg.offline.source import PostgresSource

SHOP = """
CREATE SCHEMA shop;
CREATE TABLE shop.customers (customer_id int, name text);
INSERT INTO shop.customers SELECT n, 'name ' || n FROM generate_series(1, 30) n;
CREATE TABLE shop.orders (order_no text, customer_id int, shipped_by text, noted date);
INSERT INTO shop.orders SELECT 'O' || n, 1 + n * 7 % 30, 'C' || n % 3, date '2024-01-01' + n FROM generate_series(1, 80) n;
-- Written by another system: codes with blanks and in lower case, and one that nobody knows.
CREATE TABLE shop.carriers (code text, title text);
INSERT INTO shop.carriers VALUES ('c0 ', 'Slow'), (' c1', 'Fast'), ('c2', 'Lost');
-- Numbers as text, with zeros.
CREATE TABLE shop.letters (letter text, customer_id text);
INSERT INTO shop.letters SELECT 'letter ' || n, lpad((1 + n % 25)::text, 4, '0') FROM generate_series(1, 60) n;
-- A key of two columns.
CREATE TABLE shop.lines (order_no text, line_no int, product text);
INSERT INTO shop.lines SELECT 'O' || o, l, 'p' || (o + l) % 9 FROM generate_series(1, 80) o, generate_series(1, 3) l;
CREATE TABLE shop.returns (return_id int, order_no text, line_no int);
INSERT INTO shop.returns SELECT n, 'O' || n * 3, 1 + n % 3 FROM generate_series(1, 20) n;
-- A surrogate key that every other one includes, and that nothing names.
CREATE TABLE shop.holidays (id int, day date);
INSERT INTO shop.holidays SELECT n, date '2024-01-01' + n FROM generate_series(1, 9) n;
"""

EDGES = (
    "SELECT c.schema_name || '.' || c.table_name, coret.column_names(e.child_columns), p.schema_name || '.' || p.table_name,"
    " coret.column_names(e.parent_columns), e.evidence, e.cardinality, round(e.confidence::numeric, 4), round(e.included::numeric, 4)"
    " FROM coret.join_edge e JOIN coret.catalog_table c ON c.table_id = e.child_table JOIN coret.catalog_table p ON p.table_id = e.parent_table"
)


@pytest.fixture
def shop(dsn: str) -> Iterator[Coret]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SHOP)
    with Coret(dsn) as coret:
        coret.init()
        coret.refresh()
        yield coret


def believed(
    coret: Coret, least: float = 0.3
) -> dict[tuple[str, str], tuple[str, list[str], list[str]]]:
    """The joins above a confidence: (child, parent) -> cardinality and columns."""
    with coret.connection() as connection:
        rows = connection.execute(EDGES).fetchall()
    return {(r[0], r[2]): (r[5], r[1], r[3]) for r in rows if r[6] >= least}


def test_the_joins_of_a_shop(shop: Coret) -> None:
    assert believed(shop) == {
        ("shop.orders", "shop.customers"): ("N:1", ["customer_id"], ["customer_id"]),
        ("shop.letters", "shop.customers"): ("N:1", ["customer_id"], ["customer_id"]),
        ("shop.lines", "shop.orders"): ("N:1", ["order_no"], ["order_no"]),
        ("shop.returns", "shop.orders"): ("1:1", ["order_no"], ["order_no"]),
        ("shop.returns", "shop.lines"): ("1:1", ["order_no", "line_no"], ["order_no", "line_no"]),
    }


def test_reasons_and_the_other_side(shop: Coret) -> None:
    (order,) = [j for j in shop.joins("shop.customers") if j.other_table == "shop.orders"]
    assert (order.own_columns, order.other_columns, order.cardinality) == (
        ["customer_id"], ["customer_id"], "1:N",
    )  # fmt: skip
    assert "the names fit" in order.reasons
    assert "all values are the parent's" in order.reasons
    assert (
        shop.joins("customers") == shop.joins('"shop"."customers"') == shop.joins("shop.customers")
    )
    assert shop.joins("shop.holidays") == []
    (line,) = [j for j in shop.joins("shop.returns") if j.other_table == "shop.lines"]
    # How much of the parent's is covered is known of single columns only.
    assert [reason for reason in line.reasons if "cover" in reason] == []
    assert [reason for reason in order.reasons if "cover" in reason] == [
        "they cover 100.0% of the parent's"
    ]


def test_a_column_that_is_gone_takes_its_joins_along(shop: Coret) -> None:
    """Between the first step of a refresh and the joins' own, answers are given as ever."""
    with shop.database.session(autocommit=True) as connection:
        connection.execute("ALTER TABLE shop.orders DROP COLUMN customer_id")
        with closing(PostgresSource(shop.database, 1)) as source:
            sync_catalog(connection, source)
        edges = connection.execute(EDGES).fetchall()
    assert ("shop.orders", "shop.customers") not in {(row[0], row[2]) for row in edges}
    assert ("shop.lines", "shop.orders") in {(row[0], row[2]) for row in edges}
    assert shop.retrieve("the customers and their orders").table_names


def test_a_way_between_tables(shop: Coret) -> None:
    path = shop.join_path("shop.customers", "shop.lines")
    assert [(j.hop, j.left_table, j.right_table, j.cardinality) for j in path] == [
        (1, "shop.customers", "shop.orders", "1:N"),
        (2, "shop.orders", "shop.lines", "1:N"),
    ]
    assert shop.join_path("shop.customers", "shop.lines", max_hops=1) == []
    assert shop.join_path("shop.lines", "shop.lines") == []
    assert shop.join_path("shop.holidays", "shop.lines") == []


def surest(
    graph: Mapping[int, Mapping[int, float]],
    at: int,
    end: int,
    left: int,
    seen: frozenset[int] = frozenset(),
) -> float:
    """The largest product of confidences on any way; each join counts a hundredth less, as the function has it."""
    if at == end:
        return 1.0
    ways = [
        confidence * math.exp(-0.01) * surest(graph, table, end, left - 1, seen | {at})
        for table, confidence in graph[at].items()
        if left > 0 and table not in seen
    ]
    return max(ways, default=0.0)


def test_the_surest_way_is_taken_not_the_shortest(dsn: str) -> None:
    """Of random graphs the product of confidences is compared with all ways there are."""
    with Coret(dsn) as coret, psycopg.connect(dsn, autocommit=True) as connection:
        coret.init()
        for seed in range(8):
            rng = random.Random(seed)
            connection.execute("TRUNCATE coret.catalog_table CASCADE")
            ids = [
                connection.execute(
                    "INSERT INTO coret.catalog_table (source_id, table_oid, schema_name, table_name, kind, definition_hash)"
                    " VALUES (1, %s, 's', %s, 'table', '') RETURNING table_id",
                    [n + 1, f"t{n}"],
                ).fetchone()[0]  # type: ignore[index]
                for n in range(7)
            ]
            graph: dict[int, dict[int, float]] = {t: {} for t in ids}
            for a in ids:
                for b in ids:
                    if a < b and rng.random() < 0.5:
                        graph[a][b] = graph[b][a] = round(rng.uniform(0.06, 1), 3)
                        connection.execute(
                            "INSERT INTO coret.join_edge (child_table, parent_table, child_columns, parent_columns, evidence, name_fit, cardinality, confidence)"
                            " VALUES (%s, %s, %s, %s, 'inferred', 1, 'N:1', %s)",
                            [a, b, [a * 100 + b], [b * 100 + a], graph[a][b]],
                        )

            for a in ids[:3]:
                for b in ids[3:]:
                    path = coret.join_path(f"s.t{ids.index(a)}", f"s.t{ids.index(b)}")
                    product = 1.0 if path else 0.0
                    for join in path:
                        product *= join.confidence * math.exp(-0.01)
                    assert product == pytest.approx(surest(graph, a, b, 4), rel=1e-3)


def test_verdicts_hold_through_every_refresh(shop: Coret) -> None:
    wrong, right = (
        ("shop.lines.order_no", "shop.orders.order_no"),
        ("shop.orders.noted", "shop.holidays.day"),
    )
    shop.decide_join(*wrong, "rejected")
    shop.decide_join(*reversed(right), "accepted")

    def check() -> None:
        joins = believed(shop)
        assert ("shop.lines", "shop.orders") not in joins
        assert ("shop.orders", "shop.lines") not in joins
        assert joins["shop.holidays", "shop.orders"] == ("1:1", ["day"], ["noted"])
        with shop.connection() as connection:
            stored = connection.execute(
                "SELECT evidence, confidence FROM coret.join_edge WHERE confidence = 1"
            ).fetchall()
            assert stored == [("confirmed", 1.0)]
            scored = connection.execute(
                "SELECT name_a, column_a, name_b, column_b FROM coret.compatible_pair"
                " WHERE 'shop.lines' IN (name_a, name_b) AND 'shop.orders' IN (name_a, name_b)"
            ).fetchall()
            assert [row for row in scored if row[1] == row[3] == "order_no"] == []

    check()
    shop.refresh()
    check()
    shop.refresh(full=True)
    check()
    with shop.connection() as connection:
        # Recreated and filled anew, the tables are the same to a person.
        connection.execute("CREATE TABLE shop.copy AS TABLE shop.lines; DROP TABLE shop.lines")
        connection.execute("ALTER TABLE shop.copy RENAME TO lines")
    shop.refresh()
    check()
    shop.decide_join(*reversed(wrong), "undecided")
    shop.decide_join(*right, "undecided")
    shop.refresh()
    assert ("shop.lines", "shop.orders") in believed(shop)
    assert ("shop.holidays", "shop.orders") not in believed(shop)


def test_a_verdict_of_several_columns(shop: Coret) -> None:
    shop.decide_join("shop.returns(line_no, order_no)", "shop.lines(line_no, order_no)", "rejected")
    assert ("shop.returns", "shop.lines") not in believed(shop)
    shop.decide_join(
        "shop.lines(order_no, line_no)", "shop.returns (order_no, line_no)", "accepted"
    )
    joins = believed(shop)
    assert sorted(joins["shop.returns", "shop.lines"][1]) == ["line_no", "order_no"]


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("shop.nope.id", "shop.orders.order_no", 'no table "shop.nope"'),
        ("shop.orders.nope", "shop.customers.customer_id", "no column nope"),
        ("shop.orders.customer_id", "shop.orders.order_no", "joined with itself"),
        (
            "shop.orders(customer_id, order_no)",
            "shop.customers.customer_id",
            "2 columns on one side",
        ),
        ("orders", "shop.customers.customer_id", "names no column"),
        ("shop.orders()", "shop.customers.customer_id", "no table"),
        ("'; DROP TABLE shop.orders; --.x", "shop.customers.customer_id", "no table"),
    ],
)
def test_verdicts_on_what_isnt_there(shop: Coret, left: str, right: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        shop.decide_join(left, right, "rejected")
    with shop.connection() as connection:
        assert connection.execute("SELECT count(*) FROM coret.join_verdict").fetchone() == (0,)


def test_a_verdict_is_one_of_three(shop: Coret) -> None:
    with (
        shop.database.session(autocommit=True) as connection,
        pytest.raises(psycopg.errors.InvalidParameterValue, match='coret: "maybe" is no verdict'),
    ):
        connection.execute(
            "SELECT coret.decide_join('shop.orders', '{customer_id}', 'shop.customers', '{customer_id}', 'maybe')"
        )


def test_a_name_of_several_schemas_has_to_be_told(shop: Coret) -> None:
    with shop.connection() as connection:
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.orders (a int)")
    shop.refresh()
    with pytest.raises(InputError, match=r"other\.orders, shop\.orders"):
        shop.joins("orders")
    with pytest.raises(InputError, match="max_hops is 9"):
        shop.join_path("shop.orders", "shop.lines", max_hops=9)


def test_declared_keys_are_certain_and_leave_rivals_unlikely(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA a; CREATE SCHEMA b;"
            "CREATE TABLE a.staff (staff_id int PRIMARY KEY); INSERT INTO a.staff SELECT generate_series(1, 20);"
            "CREATE TABLE b.staff (staff_id int PRIMARY KEY); INSERT INTO b.staff SELECT generate_series(1, 20);"
            "CREATE TABLE a.shifts (shift int, staff_id int REFERENCES a.staff, UNIQUE (shift, staff_id));"
            "INSERT INTO a.shifts SELECT n, 1 + n % 20 FROM generate_series(1, 50) n;"
            "CREATE TABLE a.swaps (swap int, shift int, staff_id int, FOREIGN KEY (shift, staff_id) REFERENCES a.shifts (shift, staff_id))"
        )
        with Coret(dsn) as coret:
            coret.init()
            coret.refresh()
            edges = {(r[0], r[2]): r for r in connection.execute(EDGES).fetchall()}
    assert edges["a.shifts", "a.staff"][4:7] == ("declared", "N:1", 1)
    assert edges["a.swaps", "a.shifts"][1:5] == (
        ["shift", "staff_id"], "a.shifts", ["shift", "staff_id"], "declared",
    )  # fmt: skip
    # The same names, the same values: but the key is known to point elsewhere.
    assert edges["a.shifts", "b.staff"][6] < 0.2


INCLUSIONS = "SELECT sub_column, sup_column FROM coret.inclusion"
SCORES = "SELECT table_a, table_b, column_a, column_b, score, jaccard, header_similarity FROM coret.compatibility"
CHANGES = [
    "DELETE FROM {table} WHERE random() < 0.2",
    "TRUNCATE {table}",
    "ALTER TABLE {table} ADD COLUMN {column} int DEFAULT 3",
    "CREATE TABLE {copy} AS TABLE {table}",
    "CREATE TABLE {copy} AS TABLE {table}; DROP TABLE {table}; ALTER TABLE {copy} RENAME TO {name}",
    "ALTER TABLE {table} RENAME TO {other}; CREATE TABLE {table} AS SELECT 7 AS customer_id, 'O7' AS order_no",
]


@pytest.mark.parametrize("seed", range(3))
def test_renewing_by_parts_equals_all_at_once(shop: Coret, seed: int) -> None:
    """After any changes, whatever is renewed in whichever order, all is as if found anew."""
    rng = random.Random(seed)
    with (
        shop.database.session(autocommit=True) as connection,
        closing(PostgresSource(shop.database, 1)) as source,
    ):

        def stored() -> list[list[tuple[Any, ...]]]:
            return [
                sorted(connection.execute(statement.encode()).fetchall())
                for statement in (INCLUSIONS, SCORES, EDGES)
            ]

        def renew(ids: list[int], later: list[int]) -> None:
            renew_inclusions(connection, ids, [*ids, *later])
            renew_compatibility(connection, ids, later)
            renew_joins(connection, source, ids, later)

        for step in range(5):
            for _ in range(rng.randint(1, 3)):
                table = rng.choice(["customers", "orders", "letters", "lines"])
                step += 10
                connection.execute(
                    sql.SQL(rng.choice(CHANGES)).format(  # type: ignore[arg-type]
                        table=sql.Identifier("shop", table),
                        column=sql.Identifier(f"customer_{step}_id"),
                        copy=sql.Identifier("shop", f"{table}_{step}"),
                        name=sql.Identifier(table),
                        other=sql.Identifier(f"old_{table}_{step}"),
                    )
                )
            connection.execute("SELECT pg_stat_force_next_flush()")
            shop.refresh()
            by_parts = stored()
            ids = [r[0] for r in connection.execute("SELECT table_id FROM coret.catalog_table")]
            for whole in (True, False):
                connection.execute("TRUNCATE coret.inclusion, coret.compatibility, coret.join_edge")
                prepare_names(connection)
                todo = rng.sample(ids, len(ids))
                while todo:
                    size = len(todo) if whole else rng.randint(1, len(todo))
                    renew(todo[:size], todo[size:])
                    todo = todo[size:]
                weigh_joins(connection)
                assert stored() == by_parts
        assert by_parts[2]
