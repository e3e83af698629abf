"""Believable joins among a few tables, over all their columns.

Compatibility keeps the column pair of the highest score for two tables, which need not be the
one that is meant. Names are looked at first, as they rule out most pairs; values then only of
those that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import psycopg
from psycopg.rows import class_row

from coret_pg.database.sqlfiles import query
from coret_pg.online.join_belief import JoinColumn, believe, hints
from coret_pg.online.result import Pair

# Real data is dirty: where the names are as clear as this, a child may have a few values more
# than its parent. Columns of more distinct values aren't counted through for that.
_CLEAR = 0.9
_LEAST_SHARE = 0.95
_MOST_COUNTED = 10_000


@dataclass(frozen=True)
class _KeyColumn:
    """A row of sql/queries/key_columns.sql."""

    column_id: int
    table_id: int
    table_name: str
    column_name: str
    key_kind: str
    distinct_count: int
    is_unique: bool
    min_key: int
    max_key: int
    leads: bool

    @property
    def end(self) -> JoinColumn:
        """Return the column as an end of a join."""
        return JoinColumn(
            self.table_name,
            self.column_name,
            self.key_kind == "integer",
            self.is_unique,
            self.leads,
        )

    def may_hold(self, sub: _KeyColumn) -> bool:
        """Tell whether the facts allow that this column holds every value of the other."""
        return (
            (sub.distinct_count, sub.column_id) < (self.distinct_count, self.column_id)
            and (sub.is_unique or self.is_unique)
            and sub.min_key >= self.min_key
            and sub.max_key <= self.max_key
        )

    def may_nearly_hold(self, sub: _KeyColumn) -> bool:
        """Tell whether the facts allow that this unique column holds most values of the other."""
        return (
            self.is_unique
            and max(sub.distinct_count, self.distinct_count) <= _MOST_COUNTED
            and sub.distinct_count * _LEAST_SHARE <= self.distinct_count
        )


def believable_pairs(
    connection: psycopg.Connection,
    table_ids: Sequence[int],
    *,
    across: Collection[int] | None = None,
) -> list[Pair]:
    """Return for every two of some tables the columns most likely meant to be joined.

    Only pairs of a belief above 0 that pass the gate, or nearly do where the names are clear; the
    most believable first. What a person rejected is left out, what a person confirmed or a key
    declares is believed.
    `across`: look only at pairs of which one table is among these and the other isn't.
    """
    parameters = {"table_ids": list(dict.fromkeys(table_ids))}
    with connection.cursor(row_factory=class_row(_KeyColumn)) as cursor:
        columns = cursor.execute(query("key_columns"), parameters).fetchall()
    decided = {
        (row[0], row[1]): (frozenset(row[2:4]), row[4])
        for row in connection.execute(query("decided_joins"), parameters).fetchall()
    }
    beliefs: dict[tuple[int, int], float] = {}
    near: list[bool] = []
    ends = {column.column_id: column.end for column in columns}
    hinted = {column.column_id: hints(column.table_name, column.column_name) for column in columns}
    for a, b in combinations(columns, 2):
        if a.table_id == b.table_id or a.key_kind != b.key_kind:
            continue
        if across is not None and (a.table_id in across) == (b.table_id in across):
            continue
        tables = (min(a.table_id, b.table_id), max(a.table_id, b.table_id))
        (own_a, all_a), (own_b, all_b) = hinted[a.column_id], hinted[b.column_id]
        if own_a.isdisjoint(all_b) and own_b.isdisjoint(all_a) and tables not in decided:
            continue
        for sub, sup in ((a, b), (b, a)):
            may_hold = sup.may_hold(sub)
            if may_hold or sup.may_nearly_hold(sub):
                certain, evidence = decided.get(tables, (frozenset(), None))
                if evidence == "rejected":
                    continue
                is_certain = certain == {a.column_id, b.column_id}
                belief = 1.0 if is_certain else believe(ends[a.column_id], ends[b.column_id])
                can_be_near = belief >= _CLEAR and sup.may_nearly_hold(sub)
                if can_be_near or (belief > 0 and may_hold):
                    beliefs[sub.column_id, sup.column_id] = belief
                    near.append(can_be_near)
    passing = connection.execute(
        query("passing_joins"),
        {
            "sub_columns": [sub for sub, _ in beliefs],
            "sup_columns": [sup for _, sup in beliefs],
            "may_be_near": near,
            "least_share": _LEAST_SHARE,
        },
    ).fetchall()
    by_id = {column.column_id: column for column in columns}
    pairs = [_pair(by_id[sub], by_id[sup], score, beliefs[sub, sup]) for sub, sup, score in passing]
    pairs.sort(key=lambda p: (-p.belief, -p.score, p.table_a, p.table_b, p.column_a, p.column_b))
    best: dict[tuple[int, int], Pair] = {}
    for pair in pairs:
        best.setdefault((pair.table_a, pair.table_b), pair)
    return list(best.values())


def _pair(sub: _KeyColumn, sup: _KeyColumn, score: float, belief: float) -> Pair:
    a, b = sorted((sub, sup), key=lambda column: column.table_id)
    cardinality = "1:1" if a.is_unique and b.is_unique else "1:N" if a.is_unique else "N:1"
    return Pair(a.table_id, b.table_id, a.column_name, b.column_name, score, cardinality, belief)
