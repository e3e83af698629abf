"""Measure retrieval on Spider dev from its SQLite files: load, refresh, evaluate.

    python -m bench.spider_dev DATA [--open]

DATA is the benchmark's folder: spider/databases/dev/*.sqlite, spider/questions_dev.jsonl. With
--open the pool holds the tables of Spider train too (spider/databases/train). No declared key is
loaded. Works in a database of its own (coret_bench_spider_dev or _open) on the server that
CORET_DSN or the libpq variables name, else on the embedded one; written to results/.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console

from bench.databases import make_database
from coret_pg import Coret
from coret_pg.database.connection import Database
from coret_pg.evaluation import evaluate, load_cases, render, write_report
from coret_pg.settings import load_settings


def main() -> None:
    """Run the measure and print what each stage took."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", type=Path, nargs="?", default=Path("../shared/bench"))
    arguments.add_argument("--open", action="store_true", help="the pool of 873 tables")
    arguments.add_argument("--text", choices=["names", "paper"], default="names")
    given = arguments.parse_args()
    pool = "spider-open" if given.open else "spider-dev"
    name = f"coret_bench_{pool.replace('-', '_')}"
    console = Console(soft_wrap=True)
    # The server stays up between the two connections: its last user would stop it.
    with Database(load_settings()) as server:
        with server.session(autocommit=True) as connection:
            dsn = make_database(connection, name)
        with Coret(dsn, embedded_text=given.text) as coret:
            coret.init()
            for stage in ("load", "refresh", "evaluate"):
                started = time.perf_counter()
                if stage == "load":
                    for part in ("dev", "train") if given.open else ("dev",):
                        coret.load(given.data / "spider" / "databases" / part, keys=False)
                elif stage == "refresh":
                    steps = coret.refresh().steps
                    console.print({name: round(step.seconds, 1) for name, step in steps.items()})
                else:
                    evaluation = evaluate(coret, load_cases(given.data, pool), pool=pool)
                console.print(f"{stage}: {time.perf_counter() - started:.1f} s")
    render(evaluation, console)
    console.print(f"written to {write_report(evaluation)}")


if __name__ == "__main__":
    main()
