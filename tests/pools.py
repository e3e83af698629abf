"""What is to be found in a pool of tables, by Python's sets, and the pool profiled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import psycopg

from coret_pg.offline.catalog import read_tables, sync_catalog
from coret_pg.offline.profile import profile_table
from coret_pg.offline.source import PostgresSource

Name = TypeVar("Name", bound=Hashable)


class KeyColumn(NamedTuple):
    """A column that may be a key: its table, its family, and its values as they compare."""

    table: Hashable
    family: str
    values: Sequence[Hashable]


def profile_all(connection: psycopg.Connection, source: PostgresSource) -> list[int]:
    """Read the catalog and profile every table; return the tables' ids."""
    sync_catalog(connection, source)
    ids = [row[0] for row in connection.execute("SELECT table_id FROM coret.catalog_table")]
    for table in read_tables(connection, ids):
        profile_table(connection, source, table)
    return ids


def passing_pairs(columns: Mapping[Name, KeyColumn]) -> dict[frozenset[Name], float]:
    """Return the pairs of columns that pass the gate, with the Jaccard of their values."""
    sets = {name: set(column.values) for name, column in columns.items()}
    passing = {}
    for a, b in combinations(columns, 2):
        one, other, set_a, set_b = columns[a], columns[b], sets[a], sets[b]
        if one.table == other.table or one.family != other.family or not set_a or not set_b:
            continue
        unique = len(set_a) == len(one.values) or len(set_b) == len(other.values)
        if unique and (set_a <= set_b or set_b <= set_a):
            passing[frozenset((a, b))] = len(set_a & set_b) / len(set_a | set_b)
    return passing
