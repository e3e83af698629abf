"""The join graph of a set of tables: which joins hold it together, and whether they do."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from coret_pg.online.result import Pair


def scored(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs, each with the score of its two tables."""
    scores = {(pair.table_a, pair.table_b): pair.score for pair in pairs if pair.score > 0}
    return [replace(pair, score=scores.get((pair.table_a, pair.table_b), 0.0)) for pair in pairs]


def spanning_joins(table_ids: Iterable[int], pairs: Sequence[Pair]) -> tuple[list[Pair], bool]:
    """Return the surest joins that connect the tables, and whether all hang together.

    A maximum spanning forest by confidence, then score (Kruskal); an empty or single set is
    connected.
    """
    group = {table_id: table_id for table_id in table_ids}

    def root(table_id: int) -> int:
        while group[table_id] != table_id:
            group[table_id] = group[group[table_id]]
            table_id = group[table_id]
        return table_id

    joins = []
    for pair in sorted(pairs, key=lambda p: (-p.confidence, -p.score, p.table_a, p.table_b)):
        if pair.table_a in group and pair.table_b in group:
            a, b = root(pair.table_a), root(pair.table_b)
            if a != b:
                group[a] = b
                joins.append(pair)
    return joins, len(joins) >= len(group) - 1
