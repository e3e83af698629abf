"""The snapshot step: a few sampled rows of a table (sql/functions/055_samples.sql shows them)."""

import json

import psycopg

from coret_pg.database.sqlfiles import query
from coret_pg.offline.catalog import read_columns
from coret_pg.offline.source import PoolTable, Source


def take_snapshot(
    connection: psycopg.Connection, source: Source, table: PoolTable, *, rows: int, seed: int
) -> None:
    """Sample a table's rows and store what its policy lets be kept; raise Unreadable."""
    columns = read_columns(connection, table.table_id)
    sampled = source.sample_rows(table, columns, rows, seed) if columns and rows else []
    connection.execute(
        query("store_snapshot"),
        {
            "table_id": table.table_id,
            "column_ids": [column.column_id for column in columns],
            "rows": json.dumps(sampled, ensure_ascii=False),
            "seed": seed,
        },
    )
