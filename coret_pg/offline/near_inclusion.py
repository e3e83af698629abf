"""Near-inclusion: which share of a column's values another has, where dirt breaks inclusion.

Numbers and dates are counted by their keys. Text is tidied first (case, blanks around, numbers
written as text), which nothing stored tells: it is read once more, for the few pairs whose names
are clear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import psycopg

from coret_pg.database.sqlfiles import query
from coret_pg.offline.catalog import read_tables
from coret_pg.offline.source import PoolColumn, Source, Unreadable

Pair = tuple[int, int]
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def shares(connection: psycopg.Connection, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return which share of each child column's keys its parent column has, by their ids."""
    rows = connection.execute(
        "SELECT child, parent, coret.included_share(child, parent) "
        "FROM unnest(%s::bigint[], %s::bigint[]) AS pair(child, parent)",
        [[child for child, _ in pairs], [parent for _, parent in pairs]],
    ).fetchall()
    return {(child, parent): share or 0.0 for child, parent, share in rows}


def tidied_shares(
    connection: psycopg.Connection, source: Source, pairs: Sequence[Pair]
) -> dict[Pair, float]:
    """Return which share of each child column's tidied values its parent column has.

    A column that can't be read now has no pair.
    """
    values: dict[int, frozenset[str] | frozenset[int] | None] = {}
    for column_id in sorted({column_id for pair in pairs for column_id in pair}):
        values[column_id] = _tidied(connection, source, column_id)
    found = {}
    for pair in pairs:
        child, parent = values[pair[0]], values[pair[1]]
        if child and parent:
            found[pair] = len(child & parent) / len(child)
    return found


def tidy(values: Iterable[str]) -> frozenset[str] | frozenset[int]:
    """Return tidied values, as numbers where all of them are whole numbers: `007` is 7."""
    texts = frozenset(values)
    if texts and all(_WHOLE_NUMBER.fullmatch(text) for text in texts):
        return frozenset(int(text) for text in texts)
    return texts


def _tidied(
    connection: psycopg.Connection, source: Source, column_id: int
) -> frozenset[str] | frozenset[int] | None:
    row = connection.execute(query("columns_by_id"), {"column_ids": [column_id]}).fetchone()
    if row is None:
        return None
    column_id, table_id, *described = row
    column = PoolColumn(column_id, *described)
    if column.type_family != "text":
        keys = connection.execute(
            "SELECT keys FROM coret.compared_keys(%s)", [column_id]
        ).fetchone()
        return frozenset(keys[0] or ()) if keys else None
    (table,) = read_tables(connection, [table_id])
    try:
        return tidy(source.tidied_values(table, column))
    except Unreadable:
        return None
