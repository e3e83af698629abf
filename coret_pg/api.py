"""The library's door: one object that initialises, loads, refreshes and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool

from coret_pg.database.connection import Database, explained
from coret_pg.database.migrate import SchemaState, initialise, require_schema
from coret_pg.loading import LoadReport, load_path
from coret_pg.models import ChatModel, Embedder, open_chat, open_embedder
from coret_pg.offline.progress import Progress
from coret_pg.offline.refresh import RefreshReport, refresh
from coret_pg.online.joins import (
    LEAST_CONFIDENCE,
    JoinEnd,
    PathJoin,
    TableJoin,
    Verdict,
    decide_join,
    join_path,
    joins_of,
    picture_answer,
    picture_schemas,
)
from coret_pg.online.result import Retrieval
from coret_pg.online.retrieve import retrieve
from coret_pg.pictures import Picture
from coret_pg.settings import Settings, load_settings

_MOST_CONNECTIONS = 4


class Coret:
    """Coherent table retrieval over the pool of one database.

    Arguments are settings by name (`dsn`, `k`, `llm_model` ...); what isn't given comes from the
    environment. Threads may share one object. Close it, or use it in a `with` block.
    """

    def __init__(self, dsn: str | None = None, *, settings: Settings | None = None, **more: Any):
        self.settings = settings or load_settings(dsn=dsn, **more)
        self._lock = Lock()
        self._database: Database | None = None
        self._pool: ConnectionPool | None = None
        self._embedder: Embedder | None = None
        self._chat: ChatModel | None = None
        self._chat_is_open = False

    def __enter__(self) -> Coret:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and models; the embedded server stops with its last user."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
            if self._chat is not None:
                self._chat.close()
            close_embedder = getattr(self._embedder, "close", None)
            if close_embedder is not None:
                close_embedder()
            if self._database is not None:
                self._database.close()
            self._pool = self._chat = self._embedder = self._database = None
            self._chat_is_open = False

    @property
    def database(self) -> Database:
        """Return the database, reached at first use."""
        with self._lock:
            if self._database is None:
                self._database = Database(self.settings)
            return self._database

    @property
    def embedder(self) -> Embedder:
        """Return the embedding model, loaded at first use."""
        with self._lock:
            if self._embedder is None:
                self._embedder = open_embedder(self.settings)
            return self._embedder

    @property
    def chat(self) -> ChatModel | None:
        """Return the chat model, None where none is configured."""
        with self._lock:
            if not self._chat_is_open:
                self._chat = open_chat(self.settings)
                self._chat_is_open = True
            return self._chat

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        """Lend a connection in autocommit mode, from a small pool."""
        pool = self._open_pool()
        with explained(self.database.address), pool.connection() as connection:
            yield connection

    def init(self) -> SchemaState:
        """Create or upgrade coret's schema; nothing changes where it is current."""
        return initialise(self.database)

    def load(
        self,
        path: Path,
        *,
        schema: str | None = None,
        replace: bool = False,
        keys: bool = True,
        strict: bool = False,
        progress: Callable[[str, int, int | None], None] | None = None,
    ) -> list[LoadReport]:
        """Load files into the pool, a schema a source database (docs/how-to/load.md)."""
        with self.database.session() as connection:
            return load_path(
                connection, path,
                schema=schema, replace=replace, keys=keys, strict=strict, progress=progress,
            )  # fmt: skip

    def refresh(
        self,
        *,
        full: bool = False,
        read_whole: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> RefreshReport:
        """Compute what is due about the pool: catalog, profiles, purposes, vectors, joins.

        `full`: everything anew. `read_whole`: tables to profile exactly from now on, however big.
        """
        with explained(self.database.address):
            return refresh(
                self.database, self.embedder, self.chat,
                full=full, read_whole=read_whole, progress=progress,
            )  # fmt: skip

    def retrieve(
        self, question: str, *, k: int | None = None, tau: float | None = None
    ) -> Retrieval:
        """Return the joinable set of tables that answers a question."""
        with self.connection() as connection:
            return retrieve(
                connection, self.embedder, self.chat, question,
                k=self.settings.k if k is None else k,
                tau=self.settings.tau if tau is None else tau,
            )  # fmt: skip

    async def retrieve_async(
        self, question: str, *, k: int | None = None, tau: float | None = None
    ) -> Retrieval:
        """Return what `retrieve` does, without blocking the event loop."""
        return await asyncio.to_thread(self.retrieve, question, k=k, tau=tau)

    def joins(self, table: str, *, min_confidence: float = LEAST_CONFIDENCE) -> list[TableJoin]:
        """Return the joins of a table (`schema.table`), surest first."""
        with self.connection() as connection:
            return joins_of(connection, table, min_confidence)

    def join_path(self, from_table: str, to_table: str, *, max_hops: int = 4) -> list[PathJoin]:
        """Return the surest way to join two tables by at most `max_hops` joins; empty if none."""
        with self.connection() as connection:
            return join_path(connection, from_table, to_table, max_hops)

    def decide_join(self, left: str, right: str, verdict: Verdict) -> None:
        """Accept or reject a join, or withdraw that; it holds through every refresh.

        `left`, `right`: `schema.table.column`, or `schema.table(column, column)`.
        """
        with self.connection() as connection:
            decide_join(connection, JoinEnd.parse(left), JoinEnd.parse(right), verdict)

    def picture(
        self, of: Retrieval | str | list[str], *, min_confidence: float = LEAST_CONFIDENCE
    ) -> Picture:
        """Return the join graph of an answer, or of one schema or several, to be drawn."""
        if isinstance(of, Retrieval):
            return picture_answer(of)
        with self.connection() as connection:
            return picture_schemas(connection, [of] if isinstance(of, str) else of, min_confidence)

    def _open_pool(self) -> ConnectionPool:
        database = self.database
        with self._lock:
            if self._pool is None:
                # A first connection says clearly what is wrong; the pool would only time out.
                with database.session() as connection:
                    require_schema(connection, database.address)
                self._pool = database.pool(_MOST_CONNECTIONS)
            return self._pool
