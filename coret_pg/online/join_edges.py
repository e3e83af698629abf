"""The joins worth believing among a few tables, as the refresh found and weighed them."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from coret_pg.database.sqlfiles import query
from coret_pg.online.result import Pair


def edges_among(connection: psycopg.Connection, table_ids: Sequence[int]) -> list[Pair]:
    """Return for every two of some tables the join most worth believing, surest first."""
    rows = connection.execute(query("edges_among"), {"table_ids": list(table_ids)}).fetchall()
    pairs = [Pair(*row) for row in rows]
    return sorted(pairs, key=lambda p: (-p.confidence, p.table_a, p.table_b))
