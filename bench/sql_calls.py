"""Questions from SQL under load: many callers, two workers, a chat endpoint of fixed latency.

    python -m bench.sql_calls [--tables 1000] [--callers 32] [--calls-each 10] [--latency 0.5]

A generated pool, refreshed with its embeddings, asked by a role that may SELECT its tables and
nothing else. Prints p50, p95, p99 of the whole call, errors, and the overhead: what a call takes
besides the chat endpoint's latency and the embedding of the question; under load, and of one
caller alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
from psycopg import sql

from bench.databases import drop_database, make_database
from bench.join_discovery.pools import build_pool, plan_pool
from coret_pg.api import Coret
from coret_pg.database.connection import Database
from coret_pg.settings import load_settings

CALLER = "coret_bench_caller"
DATABASE = "coret_bench_calls"


class Endpoint(ThreadingHTTPServer):
    """A chat endpoint that chooses the first two tables it may name, after a fixed time."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        began = time.perf_counter()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        schema = body["response_format"]["json_schema"]["schema"]
        names = schema["properties"]["tables"]["items"]["enum"][:2]
        answer = {
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": json.dumps({"tables": names})},
                }
            ],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
        }
        sent = json.dumps(answer).encode()
        time.sleep(max(0.0, self.server.latency_s - (time.perf_counter() - began)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Say nothing a request."""


def main() -> None:
    """Build the pool, start the workers, ask, and print what it took."""
    given = _arguments()
    settings = load_settings(dsn=given.dsn)
    with ExitStack() as stack:
        server = stack.enter_context(Database(settings))
        connection = stack.enter_context(server.session(autocommit=True))
        pool = make_database(connection, DATABASE)
        stack.callback(drop_database, connection, DATABASE)
        _build(pool, given.tables)
        endpoint = Endpoint(given.latency)
        threading.Thread(target=endpoint.serve_forever, daemon=True).start()
        stack.callback(endpoint.shutdown)
        stack.enter_context(_workers(pool, given.workers, given.callers, endpoint))
        questions = _questions(pool, given.callers * given.calls_each)
        _ask_all(pool, questions[: 8 * given.workers], given.callers)  # warm up
        print(f"{given.tables} tables, {given.workers} workers, endpoint of {given.latency:g} s")
        print("| callers | calls | errors | p50 ms | p95 ms | p99 ms | overhead p50 ms | p95 ms |")
        print("|---:|---:|---:|---:|---:|---:|---:|---:|")
        for callers, asked in ((given.callers, questions), (1, questions[:100])):
            _report(pool, callers, asked, given.latency)


def _report(pool: str, callers: int, questions: Sequence[str], latency_s: float) -> None:
    seconds, errors, overheads = _ask_all(pool, questions, callers, latency_s)
    p = _percentile
    print(
        f"| {callers} | {len(questions)} | {errors} | {p(seconds, 50)} | {p(seconds, 95)} "
        f"| {p(seconds, 99)} | {p(overheads, 50)} | {p(overheads, 95)} |",
        flush=True,
    )


def _ask_all(
    pool: str, questions: Sequence[str], callers: int, latency_s: float = 0.0
) -> tuple[list[float], int, list[float]]:
    """Ask every question; return seconds, the number of errors, and what was ours of each."""
    waiting = iter(questions)
    lock = threading.Lock()
    seconds: list[float] = []
    overheads: list[float] = []
    errors: list[str] = []

    def ask() -> None:
        with psycopg.connect(pool, user=CALLER, autocommit=True) as connection:
            while True:
                with lock:
                    question = next(waiting, None)
                if question is None:
                    return
                began = time.perf_counter()
                try:
                    row = connection.execute(
                        "SELECT max(retrieval_id), min(path) FROM coret.retrieve(%s)", [question]
                    ).fetchone()
                except psycopg.Error as error:
                    errors.append(str(error))
                    continue
                took = time.perf_counter() - began
                if row is None or row[1] != "llm":
                    errors.append(f"path {row and row[1]}")
                    continue
                embedding = connection.execute(
                    "SELECT (seconds ->> 'embedding')::float8 FROM coret.retrieval"
                    " WHERE retrieval_id = %s",
                    [row[0]],
                ).fetchone()
                seconds.append(took)
                overheads.append(took - latency_s - (embedding[0] if embedding else 0.0))

    threads = [threading.Thread(target=ask) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for text in dict.fromkeys(errors):
        print(f"error: {text}", file=sys.stderr)
    return seconds, len(errors), overheads


def _percentile(values: Sequence[float], percent: int) -> str:
    if len(values) < 2:
        return "-"
    return f"{statistics.quantiles(values, n=100)[percent - 1] * 1000:.1f}"


def _build(pool: str, tables: int) -> None:
    """Fill and refresh the pool, and let the caller read it."""
    plan = plan_pool(tables, seed=1)
    with psycopg.connect(pool, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS dblink")
        build_pool(connection, plan)
        connection.execute("VACUUM ANALYZE")
    with Coret(pool) as coret:
        coret.init()
        coret.refresh()
    with psycopg.connect(pool, autocommit=True) as connection:
        role = sql.Identifier(CALLER)
        with suppress(psycopg.errors.DuplicateObject):
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        connection.execute(sql.SQL("GRANT coret_reader TO {}").format(role))
        for schema in {table.schema for table in plan}:
            name = sql.Identifier(schema)
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(name, role))
            connection.execute(
                sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(name, role)
            )


def _questions(pool: str, count: int) -> list[str]:
    with psycopg.connect(pool) as connection:
        names = [
            row[0].replace("_", " ")
            for row in connection.execute(
                "SELECT table_name FROM coret.catalog_table ORDER BY md5(table_name || table_id)"
            )
        ]
    return [f"How many rows of {names[n % len(names)]} were there, {n}?" for n in range(count)]


@contextmanager
def _workers(pool: str, count: int, callers: int, endpoint: Endpoint) -> Iterator[None]:
    environment = {
        **os.environ,
        "CORET_DSN": pool,
        "CORET_CALLS": str(-(-callers // count)),
        "CORET_LLM_MODEL": "fixed",
        "CORET_LLM_BASE_URL": f"http://127.0.0.1:{endpoint.server_address[1]}/v1",
    }
    command = [sys.executable, "-c", "from coret_pg.cli.main import run; run()", "worker"]
    started = [
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(count)
    ]
    try:
        _wait(lambda: _count_workers(pool) == count)
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)


def _count_workers(pool: str) -> int:
    with psycopg.connect(pool) as connection:
        row = connection.execute("SELECT count(*) FROM coret.worker").fetchone()
    return int(row[0]) if row else 0


def _wait(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not condition():
        if time.monotonic() > ends:
            raise SystemExit("the workers did not start")
        time.sleep(0.1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.sql_calls", description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--callers", type=int, default=32)
    parser.add_argument("--calls-each", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds of the endpoint")
    parser.add_argument("--dsn", help="a server to use instead of the embedded one")
    return parser.parse_args()


if __name__ == "__main__":
    main()
