"""Generated pools: which tables a seed makes, and the statements that fill them in Postgres.

Databases of about ten tables (a schema each): surrogate ids, keys with gaps, codes and uuids as
keys, foreign keys (some partly NULL), names, states, dates, amounts. Rows are few in most tables
and many in some. All randomness is in the seed and in hashes of row numbers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import psycopg
from psycopg import sql

MEDIAN_ROWS = 940
SPREAD = 1.75
FEWEST_ROWS = 5
MOST_ROWS = 150_000
TABLES_A_DATABASE = 10
_TABLES_A_TRANSACTION = 100

_ENTITIES = (
    "customer", "order", "product", "invoice", "payment", "shipment", "supplier", "employee",
    "department", "project", "task", "store", "campaign", "ticket", "contract", "asset", "course",
    "student", "teacher", "patient", "visit", "flight", "airport", "player", "team", "match",
    "song", "album", "artist", "review", "booking", "hotel", "vehicle", "driver", "route",
)  # fmt: skip
_ASPECTS = ("", "", "", "_detail", "_history", "_line", "_type", "_group", "_log")
_STATES = (
    "active", "inactive", "pending", "closed", "open", "shipped", "returned", "paid", "overdue",
    "draft", "approved", "rejected", "cancelled", "new", "archived", "blocked", "expired", "lost",
    "won", "planned", "running", "done", "failed", "on hold", "review", "sent", "received",
    "refunded", "partial", "unknown",
)  # fmt: skip
_FIRST_NAMES = (
    "Ada", "Ben", "Chloe", "David", "Elena", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kira",
    "Liam", "Mona", "Noah", "Olga", "Paul", "Quinn", "Rosa", "Sami", "Tara", "Uwe", "Vera",
    "Wei", "Yara", "Zoe",
)  # fmt: skip
_LAST_NAMES = (
    "Adams", "Baker", "Costa", "Diaz", "Evans", "Fischer", "Garcia", "Hansen", "Ito", "Jensen",
    "Khan", "Lopez", "Meyer", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Sato", "Turner",
    "Ueda", "Varga", "Weber", "Young", "Zhang",
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column and the SQL of its value in row i."""

    name: str
    expression: str


@dataclass(frozen=True)
class Table:
    """A table of a pool; `key` is the SQL of its key in row {i}."""

    schema: str
    name: str
    rows: int
    key: str
    columns: tuple[Column, ...]


class _Draws:
    """Seeded choices in Python, and SQL that draws from row numbers, each time differently."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311

    def below(self, limit: int) -> str:
        """Return SQL of a number from 0 to limit - 1 for row i."""
        return f"abs(hashint8extended(i, {self.random.getrandbits(40)}) % {max(1, limit)})"

    def one_of(self, words: tuple[str, ...]) -> str:
        """Return SQL of one of some words for row i."""
        return f"({_array(words)})[1 + {self.below(len(words))}]"


def plan_pool(tables: int, seed: int) -> list[Table]:
    """Return the tables of a pool; the same for the same number and seed."""
    draws = _Draws(seed)
    rows = row_counts(tables)
    draws.random.shuffle(rows)
    return [
        table
        for start in range(0, tables, TABLES_A_DATABASE)
        for table in _plan_database(
            f"pool_{start // TABLES_A_DATABASE:04d}", rows[start : start + TABLES_A_DATABASE], draws
        )
    ]


def row_counts(tables: int) -> list[int]:
    """Return the rows of each table: log-normal quantiles, so that totals don't hang on luck."""
    normal = NormalDist(math.log(MEDIAN_ROWS), SPREAD)
    exact = (math.exp(normal.inv_cdf((rank + 0.5) / tables)) for rank in range(tables))
    return [min(MOST_ROWS, max(FEWEST_ROWS, round(count))) for count in exact]


def build_pool(connection: psycopg.Connection, tables: list[Table]) -> None:
    """Create and fill the tables, and leave them vacuumed: no method pays for that."""
    schemas: set[str] = set()
    for start in range(0, len(tables), _TABLES_A_TRANSACTION):
        with connection.transaction():
            for table in tables[start : start + _TABLES_A_TRANSACTION]:
                if table.schema not in schemas:
                    schemas.add(table.schema)
                    connection.execute(
                        sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(table.schema))
                    )
                connection.execute(_create_statement(table))
    connection.execute("VACUUM (ANALYZE)")
    connection.execute("CHECKPOINT")


def _create_statement(table: Table) -> sql.Composed:
    return sql.SQL("CREATE TABLE {} AS SELECT {} FROM generate_series(1::bigint, {}) AS i").format(
        sql.Identifier(table.schema, table.name),
        sql.SQL(", ").join(
            sql.SQL("{} AS {}").format(sql.SQL(column.expression), sql.Identifier(column.name))
            for column in table.columns
        ),
        sql.Literal(table.rows),
    )


def _plan_database(schema: str, rows: list[int], draws: _Draws) -> Iterator[Table]:
    names = draws.random.sample([(e, a) for e in _ENTITIES for a in dict.fromkeys(_ASPECTS)], 60)
    made: list[Table] = []
    used: set[str] = set()
    for count in rows:
        entity, aspect = names.pop()
        while f"{entity}{aspect}" in used:
            entity, aspect = names.pop()
        used.add(name := f"{entity}{aspect}")
        key = _key(name, draws)
        columns = [_key_column(name, key)]
        for parent in draws.random.sample(made, min(len(made), draws.random.choice((0, 1, 1, 2)))):
            columns.append(_foreign_key(parent, count, draws))
        makers = draws.random.sample(_ATTRIBUTES, draws.random.randint(3, 6))
        columns += [make(count, draws) for make in makers]
        table = Table(schema, name, count, key, tuple(columns))
        made.append(table)
        yield table


def _key(name: str, draws: _Draws) -> str:
    """Return the SQL of a table's key in row {i}: mostly 1, 2, 3 ..."""
    salt = draws.random.getrandbits(40)
    kinds = (
        (60, "({i})::integer"),
        (10, f"({draws.random.choice((100, 1000, 10000, 50001))} + {{i}})::integer"),
        (14, f"(3 * {{i}} + abs(hashint8extended({{i}}, {salt}) % 3))::integer"),
        (6, f"md5('{salt}-' || {{i}})::uuid"),
        (10, f"'{name[:3].upper()}' || '-' || lpad(({{i}})::text, 6, '0')"),
    )
    return draws.random.choices([key for _, key in kinds], [weight for weight, _ in kinds])[0]


def _key_column(name: str, key: str) -> Column:
    suffix = "code" if key.startswith("'") else "id"
    return Column(f"{name}_{suffix}", key.format(i="i"))


def _foreign_key(parent: Table, rows: int, draws: _Draws) -> Column:
    reach = max(1, int(parent.rows * draws.random.choice((1, 1, 0.9, 0.5, 0.1))))
    one_to_one = rows <= parent.rows and draws.random.random() < 0.15
    row = "i" if one_to_one else f"(1 + {draws.below(reach)})"
    value = parent.key.format(i=row)
    name = parent.columns[0].name
    return Column(name, _with_nulls(value, draws.random.choice((0, 0, 0, 5, 30)), draws))


def _with_nulls(value: str, percent: int, draws: _Draws) -> str:
    if percent == 0:
        return value
    return f"CASE WHEN i = 1 OR {draws.below(100)} >= {percent} THEN {value} END"


def _array(words: tuple[str, ...]) -> str:
    return f"ARRAY[{', '.join(repr(word) for word in words)}]"


def _state(rows: int, draws: _Draws) -> Column:
    # A table of few rows is a list of states, where others only name them.
    if rows <= len(_STATES):
        return Column("state", f"({_array(_STATES)})[i]")
    return Column("state", draws.one_of(_STATES[: draws.random.randint(3, len(_STATES))]))


def _person(rows: int, draws: _Draws) -> Column:
    value = f"{draws.one_of(_FIRST_NAMES)} || ' ' || {draws.one_of(_LAST_NAMES)}"
    return Column("name", _with_nulls(value, draws.random.choice((0, 0, 3)), draws))


def _email(rows: int, draws: _Draws) -> Column:
    host = draws.random.getrandbits(24)
    return Column("email", f"'user' || i || '@mail{host:x}.example'")


def _note(rows: int, draws: _Draws) -> Column:
    salt = draws.random.getrandbits(40)
    value = f"md5('{salt}' || i) || ' ' || md5(i || '{salt}')"
    return Column("note", _with_nulls(value, draws.random.choice((0, 20, 60)), draws))


def _country(rows: int, draws: _Draws) -> Column:
    letters = (f"chr(65 + {draws.below(limit)}::integer)" for limit in (12, 20))
    return Column("country", " || ".join(letters))


def _day(rows: int, draws: _Draws) -> Column:
    first = draws.random.choice(("2010-01-01", "2018-01-01", "2023-01-01"))
    span = draws.random.choice((90, 365, 2000, 6000))
    value = f"date '{first}' + {draws.below(span)}::integer"
    return Column("day", _with_nulls(value, draws.random.choice((0, 0, 10)), draws))


def _moment(rows: int, draws: _Draws) -> Column:
    second = f"make_interval(secs => 60 * {draws.below(3_000_000)} + 7)"
    return Column("created_at", f"timestamp '2019-01-01' + {second}")


def _amount(rows: int, draws: _Draws) -> Column:
    limit = draws.random.choice((100, 2_000, 50_000))
    value = f"({draws.below(limit)} + (1 + {draws.below(99)}) / 100.0)::numeric(12, 2)"
    return Column("amount", _with_nulls(value, draws.random.choice((0, 0, 15)), draws))


def _quantity(rows: int, draws: _Draws) -> Column:
    limit = draws.random.choice((5, 10, 100, 1000))
    return Column("quantity", f"({draws.below(limit)} + 1)::integer")


def _year(rows: int, draws: _Draws) -> Column:
    return Column("year", f"({draws.below(35)} + 1990)::integer")


_ATTRIBUTES: tuple[Callable[[int, _Draws], Column], ...] = (
    _state, _person, _email, _note, _country, _day, _moment, _amount, _quantity, _year,
)  # fmt: skip
