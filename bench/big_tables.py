"""Profile tables of many rows, and see that memory doesn't grow with them.

    python -m bench.big_tables [--tables 10] [--rows 10000000]

Makes unlogged tables (id, a foreign key of 1,000 values, a unique code, a date, an amount) in a
database of its own (coret_bench_big) on the server that CORET_DSN or the libpq variables name,
which has to be on this machine, else on the embedded one; profiles them with one worker, once of
a tenth of the rows and once of all, and prints seconds, CPU and the peak memory of the backend
that reads and of this process.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from psycopg import sql

from bench.databases import drop_database, make_database
from bench.processes import cpu_seconds, status_mb
from coret_pg import Coret
from coret_pg.database.connection import Database
from coret_pg.offline.catalog import read_tables, sync_catalog
from coret_pg.offline.profile import profile_table
from coret_pg.offline.source import PostgresSource
from coret_pg.settings import load_settings

_DATABASE = "coret_bench_big"
_FILL = """
CREATE UNLOGGED TABLE {table} AS
SELECT n AS id, (1 + n * 7919 % 1000)::int AS place_id,
       'C' || lpad((n * 48271 % 2147483647)::text, 10, '0') AS code,
       date '2000-01-01' + (n % 9000)::int AS day, (n % 100000) / 100.0 AS amount
FROM generate_series(1::bigint, {rows}) AS n
"""


def main() -> None:
    """Run the measure and print a table."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--tables", type=int, default=10)
    arguments.add_argument("--rows", type=int, default=10_000_000)
    given = arguments.parse_args()
    sys.stdout.write(
        "| tables | rows each | seconds | server CPU s | reader's peak MB | client's peak MB "
        "| sketches |\n"
        "|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    with Database(load_settings()) as server:
        for rows in (given.rows // 10, given.rows):
            with server.session(autocommit=True) as connection:
                dsn = make_database(connection, _DATABASE)
            sys.stdout.write(_measured(dsn, given.tables, rows) + "\n")
            sys.stdout.flush()
        with server.session(autocommit=True) as connection:
            drop_database(connection, _DATABASE)


def _measured(dsn: str, tables: int, rows: int) -> str:
    settings = load_settings(
        dsn=dsn, sketch_rows=min(1_000_000, rows // 2), statement_timeout_ms=600_000
    )
    with Coret(settings=settings) as coret, coret.database.session(autocommit=True) as connection:
        coret.init()
        connection.execute("CREATE SCHEMA big")
        for number in range(tables):
            connection.execute(
                sql.SQL(_FILL).format(
                    table=sql.Identifier("big", f"t{number}"), rows=sql.Literal(rows)
                )
            )
        connection.execute("ANALYZE")
        with closing(PostgresSource(coret.database, 1)) as source:
            sync_catalog(connection, source)
            ids = [row[0] for row in connection.execute("SELECT table_id FROM coret.catalog_table")]
            reader = source.backend
            _forget_peak()
            started, cpu = time.perf_counter(), cpu_seconds(reader)
            with _watched(reader) as peak:
                for table in read_tables(connection, ids):
                    profile_table(connection, source, table)
            seconds, cpu = time.perf_counter() - started, cpu_seconds(reader) - cpu
        sketches = connection.execute(
            "SELECT count(*) FROM coret.column_profile WHERE sample_shift > 0"
        ).fetchone()
    return (
        f"| {tables} | {rows:,} | {seconds:.0f} | {cpu:.0f} | {peak[0]:.0f} | "
        f"{status_mb('self', 'VmHWM'):.0f} | {sketches[0] if sketches else 0} |"
    )


@contextmanager
def _watched(pid: int) -> Iterator[list[float]]:
    """Keep the largest private memory of a process, in MB, that is seen during the block."""
    peak, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            peak[0] = max(peak[0], status_mb(pid, "RssAnon"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    yield peak
    ended.set()
    thread.join()


def _forget_peak() -> None:
    # Linux: from here on VmHWM counts anew.
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    main()
