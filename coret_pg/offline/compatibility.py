"""The compatibility step: renew the scores of changed tables with every other table.

All of it happens in the database (sql/functions/030_compatibility.sql).
"""

import psycopg


def renew_compatibility(connection: psycopg.Connection, table_ids: list[int]) -> int:
    """Recompute every pair with a side in `table_ids`; return how many pairs were stored."""
    row = connection.execute(
        "SELECT coret.refresh_compatibility(%s::bigint[])", [table_ids]
    ).fetchone()
    return int(row[0]) if row else 0
