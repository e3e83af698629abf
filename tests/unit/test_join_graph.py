"""The join graph: the strongest joins that hold a set together."""

from __future__ import annotations

from coret_pg.online.join_graph import spanning_joins
from coret_pg.online.result import Pair


def pair(a: int, b: int, score: float) -> Pair:
    return Pair(a, b, f"c{a}", f"c{b}", score, "1:N")


def test_the_strongest_joins_span_the_set() -> None:
    pairs = [pair(1, 2, 0.5), pair(2, 3, 0.9), pair(1, 3, 0.8), pair(3, 4, 0.2), pair(4, 9, 1.0)]
    joins, connected = spanning_joins([1, 2, 3, 4], pairs)
    assert joins == [pair(2, 3, 0.9), pair(1, 3, 0.8), pair(3, 4, 0.2)]
    assert connected


def test_parts_that_dont_hang_together_are_told() -> None:
    joins, connected = spanning_joins([1, 2, 3], [pair(1, 2, 0.5)])
    assert joins == [pair(1, 2, 0.5)]
    assert not connected


def test_none_and_one_are_connected() -> None:
    assert spanning_joins([], []) == ([], True)
    assert spanning_joins([7], [pair(1, 2, 0.5)]) == ([], True)
