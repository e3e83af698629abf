"""Run a refresh's steps: find what is due, let workers do it, write down what came of it.

Each worker has connections of its own; what they did is written down by the one that gives out
the work, a batch at a time, after it: no transaction is open while a model is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue

import psycopg

from coret_pg.database.connection import Database, suit_refresh
from coret_pg.database.sqlfiles import query
from coret_pg.errors import DatabaseError
from coret_pg.offline.catalog import read_tables
from coret_pg.offline.progress import Progress
from coret_pg.offline.source import PoolTable, PostgresSource, Source, Unreadable

# Workers share it; a new refresh waits until nobody holds it.
_WORKER_LOCK = (0x636F72, 2)
_LONGEST_WAIT_S = 60


@dataclass(frozen=True)
class Worker:
    """What a batch is worked on with: a connection to our schema, and the source's reader."""

    connection: psycopg.Connection
    source: Source

    def cancel(self) -> None:
        """Let the server stop what it does for this worker."""
        self.connection.cancel_safe()
        self.source.cancel()


# Does a step for a batch of tables and commits what it stored. Is told which tables are still to
# come; returns why tables were skipped, by position, where any was.
Work = Callable[[Worker, Sequence[PoolTable], Sequence[int]], Mapping[int, str] | None]


@dataclass
class StepReport:
    """What a refresh did in one step."""

    done: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@contextmanager
def workers(database: Database, source_id: int, count: int) -> Iterator[list[Worker]]:
    """Open so many workers for a `with` block.

    Raises DatabaseError where those of a refresh that was killed are still busy after a minute.
    """
    with ExitStack() as opened:
        made: list[Worker] = []
        for _ in range(count):
            connection = opened.enter_context(database.session(autocommit=True))
            if not made:
                _wait_for_orphans(connection, database.address)
            connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", _WORKER_LOCK)
            suit_refresh(connection)
            source = PostgresSource(database, source_id)
            opened.callback(source.close)
            made.append(Worker(connection, source))
        yield made


def _wait_for_orphans(connection: psycopg.Connection, address: str) -> None:
    """Wait until the server has noticed that the client of other workers is gone."""
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_LONGEST_WAIT_S}s'")
            connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", _WORKER_LOCK)
    except psycopg.errors.LockNotAvailable:
        raise DatabaseError(
            f"A refresh of {address} was killed, and its last statement still runs on the server",
            remedy="Run yours again later, or end it: see pg_stat_activity, application coret_pg",
        ) from None


class Steps:
    """The steps of one refresh job."""

    def __init__(
        self,
        connection: psycopg.Connection,
        job_id: int,
        progress: Progress,
        settings: Mapping[str, str],
        workers: Sequence[Worker],
    ) -> None:
        self.reports: dict[str, StepReport] = {}
        self._connection = connection
        self._job_id = job_id
        self._progress = progress
        self._settings = settings
        self.workers = workers

    def each(self, name: str, work: Callable[[Worker, PoolTable], str | None]) -> None:
        """Run one step a table at a time; one that can't be read is skipped with its reason."""

        def work_on_one(
            worker: Worker, batch: Sequence[PoolTable], _: Sequence[int]
        ) -> Mapping[int, str]:
            try:
                problem = work(worker, batch[0])
            except Unreadable as reason:
                # What the step could do before it met the reason stays (a column's profile).
                problem = str(reason)
            return {0: problem} if problem else {}

        self.batches(name, work_on_one, 1)

    def due(self, name: str) -> dict[int, str]:
        """Return the tables a step is due for, each with the hash of what the step reads of it."""
        return dict(
            self._connection.execute(
                "SELECT table_id, input_hash FROM coret.due_tables(%s, %s)",
                [name, self._settings[name]],
            ).fetchall()
        )

    def batches(self, name: str, work: Work, batch_size: int, *, side_by_side: bool = True) -> None:
        """Run one step for every table it is due for, a batch a worker at a time.

        `side_by_side`: whether batches may be worked on at the same time.
        """
        setting = self._settings[name]
        started = time.perf_counter()
        due = self.due(name)
        report = self.reports[name] = StepReport()
        self._progress.start(name, len(due))
        self._connection.execute(query("start_job_step"), [self._job_id, name, len(due)])
        tables = read_tables(self._connection, list(due))
        batches = [
            (
                tables[start : start + batch_size],
                [table.table_id for table in tables[start + batch_size :]],
            )
            for start in range(0, len(tables), batch_size)
        ]
        for batch, problems in self._worked_on(work, batches, side_by_side):
            with self._connection.transaction():
                for position, table in enumerate(batch):
                    problem = problems.get(position)
                    self._connection.execute(
                        query("record_step"),
                        [table.table_id, name, due[table.table_id], setting, problem],
                    )
                    if problem:
                        report.skipped[table.qualified_name] = problem
                    else:
                        report.done += 1
                self._connection.execute(
                    query("advance_job_step"),
                    [report.done, len(report.skipped), self._job_id, name],
                )
            self._progress.advance(name, len(batch))
        self._connection.execute(query("end_job_step"), [self._job_id, name])
        self._progress.finish(name)
        report.seconds = time.perf_counter() - started

    def _worked_on(
        self,
        work: Work,
        batches: Sequence[tuple[Sequence[PoolTable], Sequence[int]]],
        side_by_side: bool,
    ) -> Iterator[tuple[Sequence[PoolTable], Mapping[int, str]]]:
        """Yield each batch once it is done, with its problems; in their order where serial."""
        count = min(len(self.workers) if side_by_side else 1, len(batches))
        if count <= 1:
            for batch, later in batches:
                yield batch, work(self.workers[0], batch, later) or {}
            return
        free: SimpleQueue[Worker] = SimpleQueue()
        for worker in self.workers[:count]:
            free.put(worker)

        def work_on(batch: Sequence[PoolTable], later: Sequence[int]) -> Mapping[int, str]:
            worker = free.get()
            try:
                return work(worker, batch, later) or {}
            finally:
                free.put(worker)

        waiting = iter(batches)
        running: dict[Future[Mapping[int, str]], Sequence[PoolTable]] = {}
        with ThreadPoolExecutor(count, thread_name_prefix="coret refresh") as pool:
            try:
                while True:
                    # Few ahead: what isn't given out yet needn't be taken back on an error.
                    while len(running) < 2 * count and (given := next(waiting, None)) is not None:
                        running[pool.submit(work_on, *given)] = given[0]
                    if not running:
                        return
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield running.pop(future), future.result()
            except BaseException:
                for future in running:
                    future.cancel()
                for worker in self.workers[:count]:
                    worker.cancel()
                raise
