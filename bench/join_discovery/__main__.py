"""The command: build the pools, run the methods on them, compare what they found, report."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

import bench.join_discovery as package
from bench.databases import drop_database, make_database
from bench.join_discovery import engines, ours, pools, report, sets
from bench.join_discovery.measure import Measured, ServerProcesses
from bench.join_discovery.process import Method, Pool, run_apart
from bench.processes import available_memory_mb
from coret_pg.database.connection import Database
from coret_pg.database.embedded import attach
from coret_pg.database.migrate import initialise
from coret_pg.settings import load_settings

# In the order they run in: ours first, as the others are held against it.
METHODS: dict[str, Method] = {
    "ours": ours.run,
    "reference": sets.run_reference,
    "python": sets.run_sets,
    "export": engines.run_export,
    "duckdb": engines.run_duckdb,
    "desbordante": engines.run_desbordante,
}
_READ_FILES = {"duckdb", "desbordante"}


def main() -> None:
    """Run the benchmark; the exit status is 1 where methods disagree or one failed."""
    given = _arguments()
    chosen = {"ours", *given.methods}
    if chosen & _READ_FILES:
        chosen.add("export")
    described: list[dict[str, int]] = []
    results: report.Results = {}
    problems: list[str] = []
    with _folder() as folder, _server(given.dsn, folder) as dsn:
        for size in sorted(set(given.tables)):
            tables = pools.plan_pool(size, given.seed)
            described.append(_described(tables, given.seed))
            with _pool_database(dsn, size) as (pool_dsn, server):
                _build(pool_dsn, tables)
                _say(f"{size} tables are built")
                csv_folder = folder / f"csv_{size}"
                pool = Pool(size, pool_dsn, server.postmaster, csv_folder, given.seed, given.sample)
                for name in [name for name in METHODS if name in chosen]:
                    one = run_apart(name, METHODS[name], pool, given.most_memory)
                    results[name, size] = one
                    _say(f"{size} tables, {name}: {_outcome(one)}")
                    problems += disagreements(results["ours", size], one, pool_dsn)
                    # After each, as the larger pools take long.
                    _write_json(given.json, described, results)
                shutil.rmtree(csv_folder, ignore_errors=True)
    sys.stdout.write(report.markdown(described, results))
    if problems:
        sys.exit("\n".join(problems))


def disagreements(expected: Measured, found: Measured, dsn: str) -> list[str]:
    """Return how a method's pairs differ from ours; nothing where they are the same."""
    name = f"{found.tables} tables, {found.method}"
    if found.problem:
        return [f"{name}: failed: {found.problem}"]
    if found.verdicts and not expected.problem:
        passing = ours.verdicts(dsn, [(low, high) for low, high, _ in found.verdicts])
        wrong = [one for one in found.verdicts if one[2] != (one[:2] in passing)]
        return [f"{name}: {len(wrong)} of its sampled pairs differ from ours"] if wrong else []
    if found.pairs is None or (found.pairs, found.fingerprint) == (
        expected.pairs,
        expected.fingerprint,
    ):
        return []
    return [f"{name}: {found.pairs} pairs, not the same as ours ({expected.pairs})"]


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(
        prog="python -m bench.join_discovery", description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    arguments.add_argument(
        "--tables", type=int, action="append", help="size of a pool; may come several times"
    )
    arguments.add_argument(
        "--methods", type=_methods, default=list(METHODS), help="some of: " + ",".join(METHODS)
    )
    arguments.add_argument(
        "--dsn", help="a server on this machine; else an embedded one made for the run"
    )
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument(
        "--sample", type=int, default=1000, help="column pairs of the reference's way"
    )
    arguments.add_argument(
        "--most-memory", type=float, help="MB after which a method fails; else 85%% of what is free"
    )
    arguments.add_argument("--json", type=Path, help="file to write the figures to")
    given = arguments.parse_args()
    given.tables = given.tables or [200]
    given.most_memory = given.most_memory or 0.85 * available_memory_mb()
    return given


def _methods(text: str) -> list[str]:
    names = text.split(",")
    unknown = ", ".join(name for name in names if name not in METHODS)
    if unknown:
        raise argparse.ArgumentTypeError(f"no such method: {unknown}")
    return names


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="coret-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # The server may run as another user than we do.
        folder.chmod(0o755)
        yield folder


@contextmanager
def _server(dsn: str | None, folder: Path) -> Iterator[str]:
    if dsn is not None:
        yield dsn
        return
    with attach(load_settings(data_dir=folder / "server")) as attachment:
        yield attachment.dsn


@contextmanager
def _pool_database(dsn: str, size: int) -> Iterator[tuple[str, ServerProcesses]]:
    name = f"coret_bench_join_{size}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        server = ServerProcesses.of(connection)
        pool_dsn = make_database(connection, name)
    try:
        yield pool_dsn, server
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            drop_database(connection, name)


def _build(dsn: str, tables: list[pools.Table]) -> None:
    with Database(load_settings(dsn=dsn)) as database:
        initialise(database)
        with database.session(autocommit=True) as connection:
            pools.build_pool(connection, tables)


def _described(tables: Sequence[pools.Table], seed: int) -> dict[str, int]:
    return {
        "tables": len(tables),
        "columns": sum(len(table.columns) for table in tables),
        "rows": sum(table.rows for table in tables),
        "seed": seed,
    }


def _outcome(one: Measured) -> str:
    stages = ", ".join(f"{stage.name} {one.scale * stage.cpu:,.1f}" for stage in one.stages)
    return one.problem or f"{one.cpu:,.1f} CPU s ({stages})"


def _write_json(
    file: Path | None, described: list[dict[str, int]], results: report.Results
) -> None:
    if file is not None:
        text = json.dumps(report.as_json(described, results), indent=1)
        file.write_text(text + "\n", encoding="utf-8")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
