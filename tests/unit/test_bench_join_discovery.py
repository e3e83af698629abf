"""The parts of the join discovery benchmark that need no database."""

from __future__ import annotations

import json
import math

import pytest

from bench.join_discovery import pools, report
from bench.join_discovery.columns import NumberedColumn, fingerprint, passes
from bench.join_discovery.measure import Measured, Stage
from bench.join_discovery.sets import sample_pairs


def test_the_same_seed_plans_the_same_pool() -> None:
    assert pools.plan_pool(40, seed=3) == pools.plan_pool(40, seed=3)
    assert pools.plan_pool(40, seed=3) != pools.plan_pool(40, seed=4)


@pytest.mark.parametrize("size", [1, 15, 200])
def test_a_pool_has_as_many_tables_as_asked_for_with_names_of_their_own(size: int) -> None:
    tables = pools.plan_pool(size, seed=1)
    assert len(tables) == size
    assert len({(table.schema, table.name) for table in tables}) == size
    for table in tables:
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names) >= 4


@pytest.mark.parametrize(("size", "millions"), [(200, 0.85), (1000, 4.1), (5000, 19.8)])
def test_pools_have_as_many_rows_as_they_should_and_most_in_few_tables(
    size: int, millions: float
) -> None:
    rows = sorted(pools.row_counts(size), reverse=True)
    assert sum(rows) == pytest.approx(millions * 1e6, rel=0.06)
    assert sum(rows[: size // 10]) > sum(rows) / 2


def test_a_fingerprint_tells_sets_of_pairs_apart_whatever_their_order() -> None:
    assert fingerprint([(1, 2), (7, 3)]) == fingerprint([(3, 7), (2, 1)])
    # The same numbers in other pairs, and a pair less.
    assert fingerprint([(1, 2), (3, 7)]) != fingerprint([(1, 3), (2, 7)])
    assert fingerprint([(1, 2)]) != fingerprint([(1, 2), (3, 7)])
    assert fingerprint([]) == (0, 0)


def test_a_pair_needs_values_on_both_sides_and_a_unique_one() -> None:
    assert passes(3, True, 5, False)
    assert passes(3, False, 5, True)
    assert not passes(3, False, 5, False)
    assert not passes(0, False, 5, True)


def _columns() -> list[NumberedColumn]:
    kinds = ["integer", "integer", "text"]
    return [
        NumberedColumn(3 * table + place + 1, table, "s", f"t{table}", f"c{place}", kind)
        for table in range(4)
        for place, kind in enumerate(kinds)
    ]


def test_sampled_pairs_are_of_one_type_and_two_tables() -> None:
    count, pairs = sample_pairs(_columns(), 10, seed=1)
    # Integers: 8 over 2, less the 4 within a table; texts: 4 over 2.
    assert count == 24 + 6
    assert len(pairs) == 10
    assert all(a.type_name == b.type_name and a.table != b.table for a, b in pairs)
    assert pairs == sample_pairs(_columns(), 10, seed=1)[1]
    assert len(sample_pairs(_columns(), 1000, seed=1)[1]) == count


def test_the_exponent_of_growth() -> None:
    assert report.exponent((200, 2.0), (1000, 10.0)) == pytest.approx(1)
    assert report.exponent((200, 1.0), (1000, 25.0)) == pytest.approx(2)
    assert report.exponent((200, 0.0), (1000, 25.0)) is None


def _measured(method: str, tables: int, cpu: float, **other: object) -> Measured:
    names = ["catalog", "staging", "inclusion", "scoring"] if method == "ours" else ["run"]
    stages = [Stage(name, 0.0, cpu, cpu / len(names), 0.0, 50.0) for name in names]
    found = Measured(method, tables, stages, client_peak_mb=100.0, server_peak_mb=50.0)
    for name, value in other.items():
        setattr(found, name, value)
    return found


def _results() -> report.Results:
    measured = [
        _measured("ours", 1000, 20.0, pairs=7),
        _measured("reference", 1000, 100.0, scale=1500.0),
        _measured("desbordante", 1000, 10.0, pairs=7),
        _measured("ours", 5000, 100.0, pairs=90),
        _measured("desbordante", 5000, 400.0, problem="MemoryError"),
    ]
    return {(one.method, one.tables): one for one in measured}


def test_targets_are_met_missed_or_not_measured() -> None:
    met = {target.text: target.met for target in report.targets(_results())}
    assert list(met.values()) == [True, False, None, None, True, True]


def test_the_report_is_markdown_and_json() -> None:
    pools_built = [{"tables": 1000, "columns": 6000, "rows": 4_000_000, "seed": 1}]
    text = report.markdown(pools_built, _results())
    assert "| 1,000 | reference | 150,000 | 150,000 |" in text
    assert "failed: MemoryError" in text
    known = json.loads(json.dumps(report.as_json(pools_built, _results())))
    growth = {row["what"]: float(row["exponent"]) for row in known["growth"]}
    assert growth["ours"] == pytest.approx(math.log(5) / math.log(5))
    assert known["measured"][1]["cpu"] == 150_000
