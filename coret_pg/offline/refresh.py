"""Refresh: run each step for the tables it is due for. Safe to stop, resume and repeat.

Every table's outcome is committed with the hash of what the step read, so a run that was killed
goes on where it was, and a run with nothing due does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from coret_pg.database.connection import Database, suit_refresh
from coret_pg.database.migrate import require_schema
from coret_pg.database.sqlfiles import query
from coret_pg.errors import ConfigurationError, CoretError, DatabaseError, PoolError
from coret_pg.models import ChatModel, Embedder
from coret_pg.offline import embedding
from coret_pg.offline.catalog import CatalogChange, sync_catalog
from coret_pg.offline.compatibility import renew_compatibility, renew_inclusions, set_scoring
from coret_pg.offline.joins import prepare_names, renew_joins, weigh_joins
from coret_pg.offline.profile import profile_table
from coret_pg.offline.progress import Progress, Unwatched
from coret_pg.offline.purpose import describe_table
from coret_pg.offline.snapshot import take_snapshot
from coret_pg.offline.source import PoolTable
from coret_pg.offline.steps import StepReport, Steps, Worker, workers
from coret_pg.settings import Settings

STEPS = ("snapshot", "profile", "purpose", "embedding", "inclusion", "compatibility", "joins")
# One refresh at a time in a database; the second key tells our locks from each other.
_REFRESH_LOCK = (0x636F72, 1)
_EMBEDDING_BATCH = 64
# One pass over all keys serves a whole batch; a batch is what a killed run has to do again.
_INCLUSION_BATCH = 250
_COMPATIBILITY_BATCH = 250
_JOINS_BATCH = 100


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
        "profile": f"{settings.sketch_rows}",
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
    read_whole: Sequence[str] = (),
    progress: Progress | None = None,
) -> RefreshReport:
    """Bring everything computed about the pool up to date.

    With `full`, every step runs for every table. `read_whole`: tables (schema.table) to profile
    exactly from now on, however big they are. Raises PoolError for an empty pool,
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
        suit_refresh(connection)
        source_id = _source_here(connection, database.address)
        with (
            _job(connection) as job_id,
            workers(database, source_id, settings.workers) as hands,
        ):
            change = sync_catalog(connection, hands[0].source)
            tables = _count_tables(connection)
            if tables == 0:
                raise PoolError(
                    f"The pool in {database.address} is empty: no table but coret's own",
                    remedy="Load some (`coret load PATH`), or name another database (--dsn)",
                )
            for name in read_whole:
                connection.execute("SELECT coret.read_whole(%s)", [name])
            if full:
                connection.execute("DELETE FROM coret.table_step")
            model_id = embedding.register_model(connection, embedder)
            steps = Steps(
                connection, job_id, progress,
                step_settings(settings, chat.model if chat else None, model_id), hands,
            )  # fmt: skip
            _run_steps(connection, steps, settings, embedder, chat, model_id)
            return RefreshReport(job_id, change, tables, steps.reports)


def _run_steps(
    connection: psycopg.Connection,
    steps: Steps,
    settings: Settings,
    embedder: Embedder,
    chat: ChatModel | None,
    model_id: int,
) -> None:
    """Run all steps, in their order."""

    def snapshot(worker: Worker, table: PoolTable) -> None:
        take_snapshot(
            worker.connection, worker.source, table,
            rows=settings.sample_rows, seed=settings.sample_seed,
        )  # fmt: skip

    def profile(worker: Worker, table: PoolTable) -> None:
        profile_table(worker.connection, worker.source, table)

    def purpose(worker: Worker, batch: Sequence[PoolTable], _: Sequence[int]) -> Mapping[int, str]:
        problem = describe_table(worker.connection, batch[0], chat)
        return {0: problem} if problem else {}

    def embed(worker: Worker, batch: Sequence[PoolTable], _: Sequence[int]) -> None:
        embedding.embed_tables(worker.connection, embedder, model_id, batch, settings.embedded_text)

    def inclusion(worker: Worker, batch: Sequence[PoolTable], _: Sequence[int]) -> None:
        renew_inclusions(worker.connection, [table.table_id for table in batch], due_for_inclusion)

    def compatibility(worker: Worker, batch: Sequence[PoolTable], later: Sequence[int]) -> None:
        renew_compatibility(worker.connection, [table.table_id for table in batch], later)

    def joins(worker: Worker, batch: Sequence[PoolTable], later: Sequence[int]) -> None:
        renew_joins(worker.connection, worker.source, [table.table_id for table in batch], later)

    steps.each("snapshot", snapshot)
    steps.each("profile", profile)
    # One question to a chat model at a time; and a model has threads of its own.
    steps.batches("purpose", purpose, 1, side_by_side=False)
    steps.batches("embedding", embed, _EMBEDDING_BATCH, side_by_side=False)
    embedding.activate_model(connection, model_id)
    # The planner has to know how large what it joins has become.
    _analyze(connection, "column_profile", "column_keys", "catalog_column")
    due_for_inclusion = list(steps.due("inclusion"))
    steps.batches("inclusion", inclusion, _INCLUSION_BATCH)
    _analyze(connection, "inclusion")
    set_scoring(connection, settings.gate, settings.score_floor)
    steps.batches("compatibility", compatibility, _COMPATIBILITY_BATCH)
    if steps.due("joins"):
        # Serial steps are the first worker's.
        prepare_names(steps.workers[0].connection)
    # Two batches would both write what keys declare between them.
    steps.batches("joins", joins, _JOINS_BATCH, side_by_side=False)
    # Each join's confidence depends on its rivals: all are weighed once all are found.
    weigh_joins(connection)
    _analyze(
        connection,
        *("catalog_table", "table_embedding", "compatibility", "join_edge", "column_phrases"),
    )


def _analyze(connection: psycopg.Connection, *tables: str) -> None:
    connection.execute("SELECT coret.analyze_tables(%s)", [list(tables)])


def _source_here(connection: psycopg.Connection, address: str) -> int:
    row = connection.execute("SELECT source_id FROM coret.source WHERE kind = 'here'").fetchone()
    if row is None:
        raise DatabaseError(
            f"coret.source in {address} no longer names this database",
            remedy="Insert it again: INSERT INTO coret.source (source_name, kind) "
            "VALUES ('here', 'here')",
        )
    return int(row[0])


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
