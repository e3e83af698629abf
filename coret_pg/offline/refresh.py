"""Refresh: run each step for the tables it is due for. Safe to stop, resume and repeat.

Every table's outcome is committed with the hash of what the step read, so a run that was killed
goes on where it was, and a run with nothing due does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import psycopg

from coret_pg.database.connection import Database
from coret_pg.database.migrate import require_schema
from coret_pg.database.sqlfiles import query
from coret_pg.errors import ConfigurationError, CoretError, DatabaseError, PoolError
from coret_pg.models import ChatModel, Embedder
from coret_pg.offline import embedding
from coret_pg.offline.catalog import CatalogChange, read_tables, sync_catalog
from coret_pg.offline.compatibility import renew_compatibility, renew_inclusions, set_scoring
from coret_pg.offline.joins import prepare_names, renew_joins, weigh_joins
from coret_pg.offline.profile import profile_table
from coret_pg.offline.progress import Progress, Unwatched
from coret_pg.offline.purpose import describe_table
from coret_pg.offline.snapshot import take_snapshot
from coret_pg.offline.source import PoolTable, PostgresSource, Unreadable
from coret_pg.settings import Settings

STEPS = ("snapshot", "profile", "purpose", "embedding", "inclusion", "compatibility", "joins")
# One refresh at a time in a database; the second key tells our locks from each other.
_REFRESH_LOCK = (0x636F72, 1)
_EMBEDDING_BATCH = 64
# One pass over all keys serves a whole batch; a batch is what a killed run has to do again.
_INCLUSION_BATCH = 500
_COMPATIBILITY_BATCH = 100
_JOINS_BATCH = 100

# Runs a step for a batch of tables and commits what it stored. Is told which tables are still to
# come; returns why tables were skipped, by position, where any was.
Step = Callable[[Sequence[PoolTable], Sequence[int]], Mapping[int, str] | None]


@dataclass
class StepReport:
    """What a refresh did in one step."""

    done: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass
class RefreshReport:
    """What a refresh did."""

    job_id: int
    catalog: CatalogChange
    tables: int
    steps: dict[str, StepReport] = field(default_factory=dict)


def step_settings(
    settings: Settings, chat_model: str | None, model_id: int | None
) -> dict[str, str]:
    """Return how each step is set: a step is due again for every table when this changes."""
    return {
        "snapshot": f"{settings.sample_rows}/{settings.sample_seed}",
        "profile": "",
        "purpose": chat_model or "composed",
        "embedding": f"{model_id}/{settings.embedded_text}",
        "inclusion": "",
        "compatibility": f"{model_id}/{settings.gate}/{settings.score_floor}",
        "joins": "",
    }


def refresh(
    database: Database,
    embedder: Embedder,
    chat: ChatModel | None = None,
    *,
    full: bool = False,
    progress: Progress | None = None,
) -> RefreshReport:
    """Bring everything computed about the pool up to date.

    With `full`, every step runs for every table. Raises PoolError for an empty pool,
    DatabaseError while another refresh runs, ConfigurationError behind a pooler.
    """
    progress = progress or Unwatched()
    settings = database.settings
    if settings.pooler:
        raise ConfigurationError(
            "A refresh can't run through a transaction pooler: its locks and limits need a session",
            remedy="Give it a DSN that goes to the server directly, and CORET_POOLER=false",
        )
    with database.session(autocommit=True) as connection, _only_one(connection):
        require_schema(connection, database.address)
        with _job(connection) as job_id, closing(_source_here(database, connection)) as source:
            change = sync_catalog(connection, source)
            tables = _count_tables(connection)
            if tables == 0:
                raise PoolError(
                    f"The pool in {database.address} is empty: no table but coret's own",
                    remedy="Load some (`coret load PATH`), or name another database (--dsn)",
                )
            if full:
                connection.execute("DELETE FROM coret.table_step")
            report = RefreshReport(job_id, change, tables)
            model_id = embedding.register_model(connection, embedder)

            def embed(batch: Sequence[PoolTable], _: Sequence[int]) -> None:
                embedding.embed_tables(
                    connection, embedder, model_id, batch, settings.embedded_text
                )

            def inclusion(batch: Sequence[PoolTable], later: Sequence[int]) -> None:
                ids = [table.table_id for table in batch]
                renew_inclusions(connection, ids, [*ids, *later])

            def compatibility(batch: Sequence[PoolTable], later: Sequence[int]) -> None:
                renew_compatibility(connection, [table.table_id for table in batch], later)

            def joins(batch: Sequence[PoolTable], later: Sequence[int]) -> None:
                renew_joins(connection, source, [table.table_id for table in batch], later)

            run = _Run(
                connection, job_id, progress, report,
                step_settings(settings, chat.model if chat else None, model_id),
            )  # fmt: skip
            rows, seed = settings.sample_rows, settings.sample_seed
            run.each(
                "snapshot",
                lambda table: take_snapshot(connection, source, table, rows=rows, seed=seed),
            )
            run.each("profile", lambda table: profile_table(connection, source, table))
            run.each("purpose", lambda table: describe_table(connection, table, chat))
            run.step("embedding", embed, _EMBEDDING_BATCH)
            embedding.activate_model(connection, model_id)
            # The planner has to know how large what it joins has become.
            connection.execute(
                "ANALYZE coret.column_profile, coret.column_keys, coret.catalog_column"
            )
            run.step("inclusion", inclusion, _INCLUSION_BATCH)
            connection.execute("ANALYZE coret.inclusion")
            set_scoring(connection, settings.gate, settings.score_floor)
            run.step("compatibility", compatibility, _COMPATIBILITY_BATCH)
            prepare_names(connection)
            run.step("joins", joins, _JOINS_BATCH)
            # Each join's confidence depends on its rivals: all are weighed once all are found.
            weigh_joins(connection)
            connection.execute(
                "ANALYZE coret.table_embedding, coret.compatibility, coret.join_edge"
            )
            return report


class _Run:
    """One refresh under way: finds what is due, runs it, and writes down what came of it."""

    def __init__(
        self,
        connection: psycopg.Connection,
        job_id: int,
        progress: Progress,
        report: RefreshReport,
        settings: dict[str, str],
    ) -> None:
        self._connection = connection
        self._job_id = job_id
        self._progress = progress
        self._report = report
        self._settings = settings

    def each(self, name: str, work: Callable[[PoolTable], str | None]) -> None:
        """Run one step a table at a time; one that can't be read is skipped with its reason."""

        def work_on_one(batch: Sequence[PoolTable], _: Sequence[int]) -> Mapping[int, str]:
            try:
                problem = work(batch[0])
            except Unreadable as reason:
                # What the step could do before it met the reason stays (a column's profile).
                problem = str(reason)
            return {0: problem} if problem else {}

        self.step(name, work_on_one, 1)

    def step(self, name: str, work: Step, batch_size: int) -> None:
        """Run one step for every table it is due for, a batch at a time."""
        connection, setting = self._connection, self._settings[name]
        started = time.perf_counter()
        due: dict[int, str] = dict(
            connection.execute(
                "SELECT table_id, input_hash FROM coret.due_tables(%s, %s)", [name, setting]
            ).fetchall()
        )
        report = self._report.steps[name] = StepReport()
        self._progress.start(name, len(due))
        connection.execute(query("start_job_step"), [self._job_id, name, len(due)])
        tables = read_tables(connection, list(due))
        for start in range(0, len(tables), batch_size):
            batch = tables[start : start + batch_size]
            later = [table.table_id for table in tables[start + batch_size :]]
            problems = work(batch, later) or {}
            # After the work, not around it: no transaction is open while a model is asked.
            with connection.transaction():
                for position, table in enumerate(batch):
                    problem = problems.get(position)
                    connection.execute(
                        query("record_step"),
                        [table.table_id, name, due[table.table_id], setting, problem],
                    )
                    if problem:
                        report.skipped[table.qualified_name] = problem
                    else:
                        report.done += 1
                connection.execute(
                    query("advance_job_step"),
                    [report.done, len(report.skipped), self._job_id, name],
                )
            self._progress.advance(name, len(batch))
        connection.execute(query("end_job_step"), [self._job_id, name])
        self._progress.finish(name)
        report.seconds = time.perf_counter() - started


def _source_here(database: Database, connection: psycopg.Connection) -> PostgresSource:
    row = connection.execute("SELECT source_id FROM coret.source WHERE kind = 'here'").fetchone()
    if row is None:
        raise DatabaseError(
            f"coret.source in {database.address} no longer names this database",
            remedy="Insert it again: INSERT INTO coret.source (source_name, kind) "
            "VALUES ('here', 'here')",
        )
    return PostgresSource(database, row[0])


def _count_tables(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM coret.catalog_table").fetchone()
    return int(row[0]) if row else 0


@contextmanager
def _only_one(connection: psycopg.Connection) -> Iterator[None]:
    """Hold the refresh lock; it goes with the session, however that ends."""
    row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", _REFRESH_LOCK).fetchone()
    if not (row and row[0]):
        raise DatabaseError(
            "Another refresh of this database is running",
            remedy="Wait until it has ended (`coret status` shows it), then run yours",
        )
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", _REFRESH_LOCK)


@contextmanager
def _job(connection: psycopg.Connection) -> Iterator[int]:
    """Keep a job's row: running, then finished or failed with its reason."""
    # We hold the lock: whatever still counts as running belongs to a process that died.
    connection.execute(query("abandon_jobs"))
    row = connection.execute(query("start_job")).fetchone()
    job_id = int(row[0]) if row else 0
    try:
        yield job_id
    except BaseException as error:
        if not connection.closed:
            reason = str(error) if isinstance(error, CoretError) else type(error).__name__
            connection.execute(query("end_job"), ["failed", reason, job_id])
        raise
    connection.execute(query("end_job"), ["finished", None, job_id])
