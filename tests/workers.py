"""Workers for tests: in a thread or as a process of their own, and a look at what they do."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from coret_pg import Coret
from coret_pg.worker import Worker
from tests.fake_endpoint import FakeEndpoint

WAIT_S = 20.0


@contextmanager
def running_worker(coret: Coret) -> Iterator[Worker]:
    """Let a worker answer for a `with` block, in a thread; it listens when the block begins."""
    worker = Worker(coret.database, coret.embedder, coret.chat)
    failures: list[Exception] = []

    def work() -> None:
        try:
            worker.run()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    def listens() -> bool:
        assert not failures, failures
        row = connection.execute("SELECT count(*) FROM coret.worker").fetchone()
        return bool(row and row[0])

    thread = threading.Thread(target=work, name="worker of the tests")
    thread.start()
    try:
        with coret.database.session(autocommit=True) as connection:
            wait_for(listens)
        yield worker
    finally:
        worker.stop()
        thread.join(2 * WAIT_S)
    assert not thread.is_alive()
    assert not failures, failures


@contextmanager
def working(dsn: str, **settings: object) -> Iterator[Worker]:
    """Let a worker answer in a database for a `with` block, two questions at a time."""
    with Coret(dsn, **{"calls": 2} | settings) as coret, running_worker(coret) as worker:
        yield worker


@contextmanager
def process(dsn: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`coret worker` as a process of its own."""
    started = subprocess.Popen(
        [sys.executable, "-c", "from coret_pg.cli.main import run; run()", "worker", "--dsn", dsn],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def llm(endpoint: FakeEndpoint) -> dict[str, str]:
    return {"CORET_LLM_MODEL": "m", "CORET_LLM_BASE_URL": endpoint.base_url}


def wait_for(condition: Callable[[], bool], seconds: float = WAIT_S) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.02)


def fetch(dsn: str, query: str, *parameters: object) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query.encode(), parameters).fetchone()
    return row[0] if row else None


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
