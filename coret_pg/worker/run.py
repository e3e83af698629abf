"""The worker's loop: listen for questions, let threads answer them, look after the queue."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress

import psycopg

from coret_pg.database.connection import Database, explained
from coret_pg.database.migrate import require_schema
from coret_pg.errors import ConfigurationError, CoretError, DatabaseError
from coret_pg.models import Abandoned, ChatModel, Embedder
from coret_pg.worker import requests
from coret_pg.worker.answer import acting_for, answer

_CHANNEL = "coret_request"
_TICK_S = 1.0
_LONGEST_PAUSE_S = 30.0
# What still runs when the worker is told to stop may take so long.
_GRACE_S = 30.0
_log = logging.getLogger("coret.worker")


class Worker:
    """Answers questions from SQL until it is stopped; several in one database share the load."""

    def __init__(self, database: Database, embedder: Embedder, chat: ChatModel | None) -> None:
        """Raise ConfigurationError behind a pooler: locks and notifications need a session."""
        if database.settings.pooler:
            raise ConfigurationError(
                "A worker can't run through a transaction pooler: it holds a lock and listens",
                remedy="Give it a DSN that goes to the server directly, and CORET_POOLER=false",
            )
        self._database = database
        self._embedder = embedder
        self._chat = chat
        self._stopping = threading.Event()
        # One permit for each question that may wait.
        self._news = threading.Semaphore(0)
        self._pid = 0
        self._threads = [
            threading.Thread(target=self._answer_questions, name=f"coret call {number}")
            for number in range(database.settings.calls)
        ]

    def stop(self) -> None:
        """Take no more questions; what runs is finished. Safe in a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Answer questions until `stop` is called; connect again where the server goes away.

        Raises SchemaError, and DatabaseError where the server can't be reached at first or the
        role may not act for others.
        """
        self._check()
        for thread in self._threads:
            thread.start()
        try:
            self._listen_until_stopped()
        finally:
            self.stop()
            self._finish()

    def _check(self) -> None:
        """Raise where nothing could be answered."""
        address = self._database.address
        with self._database.session(autocommit=True) as connection, explained(address):
            require_schema(connection, address)
            try:
                with acting_for(connection, connection.info.user):
                    connection.execute("SELECT coret.reader()")
            except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
                raise DatabaseError(
                    f"The role {connection.info.user} may not answer for others",
                    remedy=f'Let an administrator run: GRANT coret_worker TO "'
                    f'{connection.info.user}"; where there is no such role, `coret init` first',
                ) from None

    def _listen_until_stopped(self) -> None:
        pause = _TICK_S
        while not self._stopping.is_set():
            try:
                with self._database.session(autocommit=True) as connection:
                    self._listen(connection)
                    pause = _TICK_S
            except (psycopg.OperationalError, DatabaseError) as error:
                _log.warning("no connection, next try in %g s: %s", pause, _one_line(error))
                self._stopping.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _listen(self, connection: psycopg.Connection) -> None:
        # Shared by all workers: callers see by it that somebody will answer.
        connection.execute("SELECT pg_advisory_lock_shared(l[1], l[2]) FROM coret.worker_lock() l")
        connection.execute(f"LISTEN {_CHANNEL}")
        self._pid = connection.info.backend_pid
        _log.info("worker %s answers up to %s at a time", self._pid, self._database.settings.calls)
        tended = 0.0
        while not self._stopping.is_set():
            if time.monotonic() >= tended + _TICK_S:
                passed_on = requests.tend(connection)
                if passed_on:
                    _log.warning("%s requests of a worker that died wait again", passed_on)
                tended = time.monotonic()
                # Also for what was asked while nobody listened.
                self._news.release()
            for _ in connection.notifies(timeout=_TICK_S / 2, stop_after=1):
                self._news.release()
        # With the lock still held: else another worker would take over what runs here.
        self._finish()

    def _finish(self) -> None:
        """Wait for what runs, but not for ever."""
        for _ in self._threads:
            self._news.release()
        ends = time.monotonic() + _GRACE_S
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()))

    def _answer_questions(self) -> None:
        """Answer one question after the other, in a thread of its own."""
        while not self._stopping.is_set():
            try:
                with self._database.session(autocommit=True) as connection:
                    # What is lost by a crash is lost with the call that waited for it.
                    connection.execute(
                        "SET synchronous_commit = off; SET plan_cache_mode = force_generic_plan"
                    )
                    while not self._stopping.is_set():
                        request = requests.claim(connection, self._pid) if self._pid else None
                        if request is None:
                            self._news.acquire()
                        else:
                            self._answer(connection, request)
            except (psycopg.OperationalError, DatabaseError) as error:
                _log.warning("a call broke off: %s", _one_line(error))
                self._stopping.wait(_TICK_S)

    def _answer(self, connection: psycopg.Connection, request: requests.Request) -> None:
        try:
            if not requests.is_wanted(connection, request):
                raise Abandoned
            found = answer(connection, self._embedder, self._chat, self._database.settings, request)
        except Abandoned:
            requests.cancelled(connection, request)
        except CoretError as error:
            requests.failed(connection, request, error)
        except psycopg.OperationalError:
            raise
        except Exception as error:  # noqa: BLE001
            # One question must not end the worker: its caller is told, the log has the rest.
            _log.exception("request %s failed", request.request_id)
            with suppress(psycopg.OperationalError):
                requests.failed(connection, request, _unforeseen(error))
        else:
            requests.answered(connection, request, found)


def count_workers(connection: psycopg.Connection) -> int:
    """Return how many workers of this database run."""
    row = connection.execute("SELECT count(*) FROM coret.worker").fetchone()
    return int(row[0]) if row else 0


def _unforeseen(error: Exception) -> CoretError:
    return CoretError(
        f"The worker met an error of its own ({type(error).__name__})",
        remedy="See the worker's log, and report it",
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
