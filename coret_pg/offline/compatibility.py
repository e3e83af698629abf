"""The inclusion and compatibility steps: whose values include whose, and how well tables join.

All of it happens in the database (sql/functions/030_inclusion.sql, 035_compatibility.sql), a
batch of tables a transaction. Batches may run side by side: no two of them write the same pair.
"""

from collections.abc import Sequence

import psycopg


def renew_inclusions(
    connection: psycopg.Connection, table_ids: Sequence[int], due: Sequence[int]
) -> int:
    """Find anew which columns include those of `table_ids` and the other way round.

    `due`: every table that is renewed in the same run, these included. What two of them hold of
    each other is found from the side of the one that holds it. Returns how many pairs were stored.
    """
    return _count(
        connection, "SELECT coret.refresh_inclusions(%s::bigint[], %s::bigint[])", table_ids, due
    )


def set_scoring(connection: psycopg.Connection, gate: str, floor: float) -> None:
    """Say how compatibility is computed from now on: which gate, and what is worth storing."""
    connection.execute(
        "UPDATE coret.compatibility_setting SET gate = %s, score_floor = %s "
        "WHERE (gate, score_floor) IS DISTINCT FROM (%s, %s::real)",
        [gate, floor, gate, floor],
    )


def renew_compatibility(
    connection: psycopg.Connection, table_ids: Sequence[int], later: Sequence[int] = ()
) -> int:
    """Score anew every pair with a side in `table_ids`, but those with a table of `later`.

    `later`: tables renewed after these in the same run; they do the pairs with these. Returns how
    many pairs were stored.
    """
    return _count(
        connection,
        "SELECT coret.refresh_compatibility(%s::bigint[], %s::bigint[])",
        table_ids,
        later,
    )


def _count(
    connection: psycopg.Connection, statement: str, first: Sequence[int], second: Sequence[int]
) -> int:
    row = connection.execute(statement.encode(), [list(first), list(second)]).fetchone()
    return int(row[0]) if row else 0
