"""The pool's columns as the methods know them, and how pairs of them are told and compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql

# Of an order-free checksum of pairs; the products stay below 2 ** 63.
_FACTOR = 100_003
_MODULUS = 2_147_483_647


@dataclass(frozen=True)
class NumberedColumn:
    """A column by its number in the order of schema, table and position."""

    number: int
    table: int
    schema_name: str
    table_name: str
    column_name: str
    type_name: str

    @property
    def relation(self) -> sql.Identifier:
        """Return the table's name for a statement."""
        return sql.Identifier(self.schema_name, self.table_name)

    @property
    def identifier(self) -> sql.Identifier:
        """Return the column's name for a statement."""
        return sql.Identifier(self.column_name)


@cache
def statement(name: str) -> sql.SQL:
    """Return a statement of this folder's .sql files."""
    return sql.SQL(Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8"))


def pool_columns(connection: psycopg.Connection) -> list[NumberedColumn]:
    """Return every column of the pool, by number."""
    rows = connection.execute(statement("columns")).fetchall()
    return [NumberedColumn(*row) for row in rows]


def fingerprint(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return how many pairs there are and a checksum of them, whatever their order."""
    count = total = 0
    for one, other in pairs:
        mixed = (min(one, other) * _FACTOR + max(one, other)) % _MODULUS
        count += 1
        total += mixed * mixed % _MODULUS
    return count, total


def passes(distinct_a: int, unique_a: bool, distinct_b: int, unique_b: bool) -> bool:
    """Tell whether two columns of one type can pass at all: both have values, one is unique."""
    return distinct_a > 0 and distinct_b > 0 and (unique_a or unique_b)
