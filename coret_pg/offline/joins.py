"""The joins step: which of the many formally possible joins are worth believing.

Names rule out most pairs of columns and are read here (coret_pg/join_names.py); values and the
weighing of every candidate against the others are set operations (sql/functions/037_joins.sql).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psycopg
from psycopg.rows import class_row

from coret_pg.database.sqlfiles import query
from coret_pg.join_names import JoinColumn, fit, hints
from coret_pg.offline.composite_joins import composite_edges
from coret_pg.offline.near_inclusion import shares, tidied_shares
from coret_pg.offline.source import Source

# Real data is dirty: where the names are as clear as this, a child may have a few values more
# than its parent. Columns of more distinct values aren't counted through for that.
CLEAR = 0.9
LEAST_SHARE = 0.95
MOST_COUNTED = 100_000


@dataclass
class _Plausible:
    """A row of sql/queries/plausible_joins.sql."""

    child: int
    parent: int
    child_table: int
    parent_table: int
    child_table_name: str
    child_column_name: str
    parent_table_name: str
    parent_column_name: str
    child_leads: bool
    parent_leads: bool
    child_is_unique: bool
    is_whole_number: bool
    is_text: bool
    values_tell: bool
    is_included: bool
    is_empty: bool
    is_sampled: bool

    @cached_property
    def name_fit(self) -> float:
        """Return how well the names of the two columns fit a join."""
        child = JoinColumn(self.child_table_name, self.child_column_name, self.child_leads)
        parent = JoinColumn(self.parent_table_name, self.parent_column_name, self.parent_leads)
        return fit(child, parent, whole_numbers=self.is_whole_number)


def prepare_names(connection: psycopg.Connection) -> None:
    """Lay the stems of all columns' names out in a temporary table, for `renew_joins`."""
    connection.execute("DROP TABLE IF EXISTS pg_temp.name_stem")
    connection.execute(query("name_stems"))
    columns = connection.execute(query("stem_columns")).fetchall()
    with connection.cursor().copy("COPY pg_temp.name_stem FROM STDIN") as copy:
        for column_id, table_id, table_name, column_name, may_be_parent in columns:
            own, every = hints(table_name, column_name)
            for stem in sorted(every):
                copy.write_row((column_id, table_id, stem, stem in own, may_be_parent))
    connection.execute("ANALYZE pg_temp.name_stem")


def renew_joins(
    connection: psycopg.Connection,
    source: Source,
    table_ids: Sequence[int],
    later: Sequence[int] = (),
) -> int:
    """Look anew for joins with a side in `table_ids`, but those with a table of `later`.

    Needs `prepare_names`; `weigh_joins` has to follow, once all are found. Returns how many
    possible joins were stored.
    """
    parameters: dict[str, Any] = {
        "changed": list(table_ids),
        "later": list(later),
        "least_share": LEAST_SHARE,
        "most_counted": MOST_COUNTED,
    }
    with connection.cursor(row_factory=class_row(_Plausible)) as cursor:
        plausible = cursor.execute(query("plausible_joins"), parameters).fetchall()
    edges = [
        *_edges(connection, source, plausible),
        *composite_edges(connection, source, parameters, LEAST_SHARE),
    ]
    # Stored at the end, at once: no transaction is open while a table is read.
    with connection.transaction():
        connection.execute(query("forget_join_edges"), parameters)
        with connection.cursor() as cursor:
            cursor.executemany(query("store_join_edge"), edges)
        connection.execute("SELECT coret.renew_certain_joins(%s)", [list(table_ids)])
    return len(edges)


def weigh_joins(connection: psycopg.Connection) -> int:
    """Set the confidence of every possible join by what speaks for it and for its rivals."""
    row = connection.execute("SELECT coret.weigh_joins()").fetchone()
    return int(row[0]) if row else 0


def _edges(
    connection: psycopg.Connection, source: Source, plausible: Sequence[_Plausible]
) -> Iterator[dict[str, Any]]:
    doubtful = [p for p in plausible if not (p.is_empty or p.is_included) and p.name_fit >= CLEAR]
    counted = shares(connection, [(p.child, p.parent) for p in doubtful if not p.is_text])
    counted |= tidied_shares(
        connection, source, [(p.child, p.parent) for p in doubtful if p.is_text]
    )
    for pair in plausible:
        included: float | None
        if pair.is_empty:
            if pair.name_fit < 1:
                continue
            included = None
        elif pair.is_included:
            if pair.name_fit == 0 and not pair.values_tell:
                continue
            included = 1.0
        else:
            included = counted.get((pair.child, pair.parent), 0.0)
            if included < LEAST_SHARE:
                continue
        yield {
            "child_table": pair.child_table,
            "parent_table": pair.parent_table,
            "child_columns": [pair.child],
            "parent_columns": [pair.parent],
            "name_fit": pair.name_fit,
            "included": included,
            "cardinality": "1:1" if pair.child_is_unique else "N:1",
            "is_sampled": pair.is_sampled,
        }
