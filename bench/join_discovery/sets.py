"""The ways that compare in Python: pair by pair as the reference does, and sets of all columns."""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import psycopg

from bench.join_discovery.columns import (
    NumberedColumn,
    fingerprint,
    passes,
    pool_columns,
    statement,
)
from bench.join_discovery.measure import Measured, Meter
from bench.join_discovery.process import Pool


def run_reference(pool: Pool, meter: Meter, measured: Measured) -> None:
    """Compare a sample of the pairs, two DISTINCT queries each, and extrapolate."""
    with psycopg.connect(pool.dsn, autocommit=True) as connection:
        columns = pool_columns(connection)
        pairs, sampled = sample_pairs(columns, pool.sample, pool.seed)
        asked = {column for pair in sampled for column in pair}
        unique = {column: _is_unique(connection, column) for column in asked}
        seconds = []
        with meter.stage("compare"):
            for one, other in sampled:
                began = time.perf_counter()
                a, b = _values(connection, one), _values(connection, other)
                found = passes(len(a), unique[one], len(b), unique[other]) and (a <= b or b <= a)
                seconds.append(time.perf_counter() - began)
                low, high = sorted((one.number, other.number))
                measured.verdicts.append((low, high, found))
        measured.scale = pairs / len(sampled)
        measured.facts["sampled_pairs"] = len(sampled)
        measured.facts["all_pairs"] = pairs
        # Of the extrapolation: how far the mean of such a sample strays.
        measured.facts["relative_error"] = (
            statistics.stdev(seconds) / statistics.mean(seconds) / len(seconds) ** 0.5
        )


def run_sets(pool: Pool, meter: Meter, measured: Measured) -> None:
    """Fetch every column's values once and compare all pairs that could pass."""
    with psycopg.connect(pool.dsn, autocommit=True) as connection, meter.stage("run"):
        by_type: dict[str, list[tuple[NumberedColumn, bool, set[str]]]] = defaultdict(list)
        for column in pool_columns(connection):
            unique = _is_unique(connection, column)
            by_type[column.type_name].append((column, unique, _values(connection, column)))
        found = list(_included(by_type))
    measured.pairs, measured.fingerprint = fingerprint(found)


def sample_pairs(
    columns: list[NumberedColumn], size: int, seed: int
) -> tuple[int, list[tuple[NumberedColumn, NumberedColumn]]]:
    """Return how many pairs of one type and different tables there are, and a sample of them."""
    groups: dict[str, list[NumberedColumn]] = defaultdict(list)
    tables: dict[tuple[str, int], int] = defaultdict(int)
    for column in columns:
        groups[column.type_name].append(column)
        tables[column.type_name, column.table] += 1
    count = sum(len(group) * (len(group) - 1) // 2 for group in groups.values())
    count -= sum(same * (same - 1) // 2 for same in tables.values())
    names = sorted(groups)
    weights = [len(groups[name]) * (len(groups[name]) - 1) for name in names]
    rng = random.Random(seed)  # noqa: S311
    sampled: dict[tuple[int, int], tuple[NumberedColumn, NumberedColumn]] = {}
    while len(sampled) < min(size, count):
        one, other = rng.sample(groups[rng.choices(names, weights)[0]], 2)
        if one.table != other.table:
            sampled[min(one.number, other.number), max(one.number, other.number)] = (one, other)
    return count, list(sampled.values())


def _included(
    by_type: dict[str, list[tuple[NumberedColumn, bool, set[str]]]],
) -> Iterator[tuple[int, int]]:
    for group in by_type.values():
        group.sort(key=lambda member: len(member[2]))
        for (one, unique, small), (other, other_unique, large) in combinations(group, 2):
            if (
                one.table != other.table
                and passes(len(small), unique, len(large), other_unique)
                and small <= large
            ):
                yield one.number, other.number


def _values(connection: psycopg.Connection, column: NumberedColumn) -> set[str]:
    query = statement("distinct_values").format(column=column.identifier, relation=column.relation)
    return {row[0] for row in connection.execute(query)}


def _is_unique(connection: psycopg.Connection, column: NumberedColumn) -> bool:
    query = statement("uniqueness").format(column=column.identifier, relation=column.relation)
    row = connection.execute(query).fetchone()
    return bool(row and row[0])
