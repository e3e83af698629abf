"""Joins over two to four columns: keys of tables that no single column identifies.

Only columns of the same names are tried, the parent's first column among them, since keys stand
first by custom; the tuples themselves are counted in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from coret_pg.database.sqlfiles import query
from coret_pg.offline.catalog import read_tables
from coret_pg.offline.source import PoolColumn, Source, Unreadable

# A table of more rows isn't read again for this.
MOST_ROWS = 1_000_000
MOST_COLUMNS = 4


def composite_edges(
    connection: psycopg.Connection, source: Source, parameters: dict[str, Any], least_share: float
) -> Iterator[dict[str, Any]]:
    """Yield joins of several columns in the form of sql/queries/store_join_edge.sql.

    `parameters`: those of sql/queries/composite_candidates.sql. A table that can't be read now
    has none.
    """
    candidates = connection.execute(
        query("composite_candidates"), {**parameters, "most_rows": MOST_ROWS}
    ).fetchall()
    for child_table, parent_table, child_columns, parent_columns in candidates:
        tables = {
            table.table_id: table for table in read_tables(connection, [child_table, parent_table])
        }
        columns = _columns(connection, [*child_columns, *parent_columns])
        for count in range(2, min(len(parent_columns), MOST_COLUMNS) + 1):
            try:
                found = source.count_tuples(
                    tables[child_table], [columns[c] for c in child_columns[:count]],
                    tables[parent_table], [columns[c] for c in parent_columns[:count]],
                )  # fmt: skip
            except Unreadable:
                break
            included = found.shared / found.child if found.child else 0.0
            if included < least_share:
                # More columns can only hold less.
                break
            if found.parent_is_unique:
                pairs = sorted(zip(child_columns[:count], parent_columns[:count], strict=True))
                yield {
                    "child_table": child_table,
                    "parent_table": parent_table,
                    "child_columns": [child for child, _ in pairs],
                    "parent_columns": [parent for _, parent in pairs],
                    "name_fit": 1.0,
                    "included": included,
                    "cardinality": "1:1" if found.child_is_unique else "N:1",
                    "is_sampled": False,
                }
                break


def _columns(connection: psycopg.Connection, column_ids: Sequence[int]) -> dict[int, PoolColumn]:
    rows = connection.execute(query("columns_by_id"), {"column_ids": list(column_ids)}).fetchall()
    # The kind that the values really have stands in for the declared family.
    return {row[0]: PoolColumn(row[0], *row[2:]) for row in rows}
