"""What was measured, as Markdown and as JSON: figures, growth, targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.join_discovery.measure import Measured
from bench.join_discovery.ours import UP_TO_VERIFICATION

Results = dict[tuple[str, int], Measured]
MOST_GROWTH = 1.4
MOST_SERVER_MB = 500
_MET = {True: "yes", False: "no", None: "not measured"}


@dataclass(frozen=True)
class Target:
    """A target, the figure it is held against, and whether it is met (None: not measured)."""

    text: str
    figure: str
    met: bool | None


def exponent(small: tuple[int, float], large: tuple[int, float]) -> float | None:
    """Return x of cost ~ tables ** x between two (tables, cost); None where a cost is nought."""
    (few, low), (many, high) = small, large
    if min(low, high) <= 0 or few == many:
        return None
    return math.log(high / low) / math.log(many / few)


def markdown(pools: Sequence[dict[str, int]], results: Results) -> str:
    """Return the whole report."""
    measured = list(results.values())
    parts = [
        _section("Pools", ("Tables", "Columns", "Million rows", "Seed"), (
            (f"{pool['tables']:,}", f"{pool['columns']:,}", f"{pool['rows'] / 1e6:.2f}",
             str(pool["seed"])) for pool in pools)),
        _section("Methods", (
            "Tables", "Method", "Wall s", "CPU s", "client", "server", "Client MB", "Server MB",
            "Pairs", "Remark"), (_method_row(one) for one in measured)),
        _section("Ours by stage", (
            "Tables", "Stage", "Wall s", "CPU s", "client", "server", "Server MB"), (
            (f"{one.tables:,}", stage.name, _number(stage.seconds), _number(stage.cpu),
             _number(stage.client_cpu), _number(stage.server_cpu), _number(stage.server_peak_mb))
            for one in measured if one.method == "ours" for stage in one.stages)),
        _section("Disk of the staging, MB", ("Tables", "What", "MB"), (
            (f"{one.tables:,}", name.removesuffix("_mb"), _number(value))
            for one in measured if one.method == "ours"
            for name, value in one.facts.items() if name.endswith("_mb"))),
        _section("Growth of CPU: x of tables ** x", ("From", "To", "What", "x"), _growth(results)),
        _section("Targets", ("Target", "Measured", "Met"), (
            (target.text, target.figure, _MET[target.met]) for target in targets(results))),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(pools: Sequence[dict[str, int]], results: Results) -> dict[str, object]:
    """Return the report as data."""
    return {
        "pools": list(pools),
        "measured": [one.as_json() for one in results.values()],
        "growth": [
            dict(zip(("from", "to", "what", "exponent"), row, strict=True))
            for row in _growth(results)
        ],
        "targets": [
            {"target": target.text, "measured": target.figure, "met": target.met}
            for target in targets(results)
        ],
    }


def targets(results: Results) -> list[Target]:
    """Return what this project's join discovery has to meet, of what was measured."""

    found = [
        _ratio("1,000 tables: CPU of the reference's way / ours, at least 5,000",
               _cpu(results, "reference", 1000), _cpu(results, "ours", 1000), least=5000),
        _ratio("1,000 tables: CPU of ours / Desbordante, at most 1",
               _cpu(results, "ours", 1000), _cpu(results, "desbordante", 1000), most=1),
        _ratio("5,000 tables: CPU of ours / Desbordante, at most 0.5",
               _cpu(results, "ours", 5000), _cpu(results, "desbordante", 5000), most=0.5),
        _ratio("5,000 tables: memory (client + server) of ours / Desbordante, at most 0.1",
               _memory(results, "ours", 5000), _memory(results, "desbordante", 5000), most=0.1),
        _ratio(f"5,000 tables: MB of all server processes, at most {MOST_SERVER_MB}",
               _server_memory(results, "ours", 5000), 1, most=MOST_SERVER_MB),
    ]  # fmt: skip
    for (method, tables), one in results.items():
        if method == "ours" and "one_table_cpu" in one.facts:
            found.append(
                _ratio(
                    f"{tables:,} tables: CPU of renewing one changed table / of all, at most 0.01",
                    one.facts["one_table_cpu"], one.cpu, most=0.01,
                )
            )  # fmt: skip
    for few, many in _steps(results, "ours"):
        growth = exponent((few.tables, _verified(few)), (many.tables, _verified(many)))
        found.append(
            Target(
                f"{few.tables:,} to {many.tables:,} tables: growth of ours up to verification, "
                f"at most {MOST_GROWTH}",
                _number(growth), None if growth is None else growth <= MOST_GROWTH,
            )
        )  # fmt: skip
    return found


def _ratio(
    text: str, top: float | None, bottom: float | None, *, least: float = 0, most: float = 0
) -> Target:
    if top is None or not bottom:
        return Target(text, "", None)
    value = top / bottom
    return Target(text, _number(value), value >= least if least else value <= most)


def _of(results: Results, method: str, tables: int) -> Measured | None:
    found = results.get((method, tables))
    return None if found is None or found.problem else found


def _cpu(results: Results, method: str, tables: int) -> float | None:
    found = _of(results, method, tables)
    return found.cpu if found else None


def _server_memory(results: Results, method: str, tables: int) -> float | None:
    found = _of(results, method, tables)
    return found.server_peak_mb if found else None


def _memory(results: Results, method: str, tables: int) -> float | None:
    """Return the peak of all that works for the method: no server does for one that reads files."""
    found = _of(results, method, tables)
    if found is None or found.client_peak_mb is None:
        return None
    return found.client_peak_mb + (found.server_peak_mb or 0 if method == "ours" else 0)


def _growth(results: Results) -> Iterable[tuple[str, str, str, str]]:
    for method in dict.fromkeys(method for method, _ in results):
        for few, many in _steps(results, method):
            costs = [(method, few.cpu, many.cpu)]
            if method == "ours":
                costs.append(("ours, up to verification", _verified(few), _verified(many)))
                costs += [
                    (f"ours, {stage.name}", few.stage_cpu(stage.name), many.stage_cpu(stage.name))
                    for stage in few.stages
                ]
            for what, low, high in costs:
                growth = exponent((few.tables, low), (many.tables, high))
                yield f"{few.tables:,}", f"{many.tables:,}", what, _number(growth)


def _steps(results: Results, method: str) -> list[tuple[Measured, Measured]]:
    sizes = sorted(
        (one for (name, _), one in results.items() if name == method and not one.problem),
        key=lambda one: one.tables,
    )
    return list(pairwise(sizes))


def _verified(measured: Measured) -> float:
    return measured.stage_cpu(*UP_TO_VERIFICATION)


def _method_row(one: Measured) -> tuple[str, ...]:
    scale = one.scale
    return (
        f"{one.tables:,}", one.method, _number(one.seconds), _number(one.cpu),
        _number(scale * sum(stage.client_cpu for stage in one.stages)),
        _number(scale * sum(stage.server_cpu for stage in one.stages)),
        _number(one.client_peak_mb), _number(one.server_peak_mb),
        "" if one.pairs is None else f"{one.pairs:,}", _remark(one),
    )  # fmt: skip


def _remark(one: Measured) -> str:
    facts = one.facts
    if one.problem:
        return f"failed: {one.problem}"
    if "sampled_pairs" in facts:
        return (
            f"from {facts['sampled_pairs']:,.0f} of {facts['all_pairs']:,.0f} pairs, "
            f"± {facts['relative_error']:.0%}"
        )
    if "unread" in facts:
        return "not compared: too many dependencies to read them back"
    if "dependencies" in facts:
        return f"{facts['dependencies']:,.0f} dependencies before the gate"
    if "table_pairs" in facts:
        return f"{facts['table_pairs']:,.0f} table pairs stored"
    return f"{facts['csv_mb']:,.0f} MB of CSV" if "csv_mb" in facts else ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _section(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if not lines:
        return ""
    head = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join([f"## {title}", "", *head, *lines])
