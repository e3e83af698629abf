"""Connections to the pool's database: where it is, how it is named without its password."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import conninfo, sql
from psycopg_pool import ConnectionPool

from coret_pg.errors import ConfigurationError, DatabaseError, InputError
from coret_pg.settings import Settings

if TYPE_CHECKING:
    from coret_pg.database.embedded import Attachment

# How every error message of our SQL functions begins.
_OUR_ERROR = "coret: "
# For each sort and hash of a refresh: bounded, whatever the server is set to.
_WORK_MEM = "32MB"
_SQLALCHEMY_FORM = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://", re.IGNORECASE)


def parse_dsn(dsn: str) -> dict[str, Any]:
    """Return libpq parameters of a DSN in any form: URI, SQLAlchemy URL or keywords.

    Raises ConfigurationError for anything else; the message never shows the DSN.
    """
    try:
        parameters = conninfo.conninfo_to_dict(_SQLALCHEMY_FORM.sub("postgresql://", dsn.strip()))
        # An @ in a password that isn't percent-encoded makes its end part of the host.
        if "@" in str(parameters.get("host", "")):
            raise psycopg.ProgrammingError
        return parameters
    except psycopg.ProgrammingError:
        # libpq's message may quote part of the DSN, and so the password: it isn't passed on.
        raise ConfigurationError(
            "The DSN can't be read",
            remedy="Write it as postgresql://user@host:5432/database or 'host=... dbname=...'; "
            "percent-encode special characters of a password in a URL",
        ) from None


class Database:
    """The database that holds the pool; starts the embedded server where no other was named."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._attachment: Attachment | None = None
        if settings.dsn is not None:
            self._parameters = parse_dsn(settings.dsn.get_secret_value())
        elif settings.uses_embedded_server:
            # Only here: a user with a server of their own needs nothing of it.
            from coret_pg.database.embedded import attach

            self._attachment = attach(settings)
            self._parameters = parse_dsn(self._attachment.dsn)
        else:
            self._parameters = {}

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the embedded server; the last one out stops it."""
        if self._attachment is not None:
            self._attachment.close()
            self._attachment = None

    @property
    def is_embedded(self) -> bool:
        """Tell whether this is the embedded server."""
        return self._attachment is not None

    @property
    def address(self) -> str:
        """Return host, port and database name, without user and password."""
        shown = {
            k: v for k, v in self._parameters.items() if k in ("host", "port", "dbname", "service")
        }
        return conninfo.make_conninfo("", **shown) or "the server named by libpq's variables"

    def connect(self, *, autocommit: bool = False, **parameters: Any) -> psycopg.Connection:
        """Open a connection.

        Raises DatabaseError where the server can't be reached or refuses us.
        """
        given = {**self._defaults(), **parameters}
        try:
            connection = psycopg.connect("", autocommit=autocommit, **given)
        except psycopg.OperationalError as error:
            raise DatabaseError(
                f"No connection to {self.address}: {_without_secrets(str(error), given)}",
                remedy="Check that the server runs there and that user, password and database are "
                "right (`coret doctor`)",
            ) from None
        self._configure(connection)
        return connection

    def pool(self, most_connections: int) -> ConnectionPool:
        """Return an open pool of connections in autocommit mode."""
        pool = ConnectionPool(
            "",
            kwargs={**self._defaults(), "autocommit": True},
            min_size=0,
            max_size=most_connections,
            configure=self._configure,
            check=ConnectionPool.check_connection,
            open=False,
        )
        pool.open()
        return pool

    def _defaults(self) -> dict[str, Any]:
        options = self._parameters.get("options") or os.environ.get("PGOPTIONS", "")
        # Our statements are short, and row-level security makes them look dear: compiling them
        # would take longer than they do. A transaction pooler takes no options.
        ours = {} if self.settings.pooler else {"options": f"-c jit=off {options}".strip()}
        return {
            "application_name": "coret_pg",
            "client_encoding": "utf8",
            "connect_timeout": self.settings.connect_timeout_s,
            **self._parameters,
            **ours,
        }

    def _configure(self, connection: psycopg.Connection) -> None:
        if self.settings.pooler:
            connection.prepare_threshold = None

    @contextmanager
    def session(self, *, autocommit: bool = False) -> Iterator[psycopg.Connection]:
        """Open a connection for a `with` block; closed at its end, rolled back on an error."""
        with self.connect(autocommit=autocommit) as connection:
            yield connection


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Turn what the server refuses into an error with its remedy.

    Raises DatabaseError for what can happen at any time, InputError for what our own SQL
    functions say of their arguments.
    """
    try:
        yield
    except psycopg.Error as error:
        message = error.diag.message_primary or ""
        if message.startswith(_OUR_ERROR):
            raise InputError(
                message.removeprefix(_OUR_ERROR), remedy=error.diag.message_hint or "See its text"
            ) from None
        _explain(error, address)
        raise


def _explain(error: psycopg.Error, address: str) -> None:
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        raise DatabaseError(
            f"The role may not do this in {address}: {error.diag.message_primary}",
            remedy="Let the owner of schema coret grant it (docs/how-to/connect.md)",
        ) from None
    if isinstance(error, psycopg.OperationalError):
        raise DatabaseError(
            f"The connection to {address} broke: {' '.join(str(error).split())}",
            remedy="Run the command again; what was finished is kept",
        ) from None


def _without_secrets(message: str, parameters: dict[str, Any]) -> str:
    """Return one line of libpq's message, without the password should it ever be quoted there."""
    password = parameters.get("password")
    if password:
        message = message.replace(str(password), "***")
    return " ".join(message.split())


def suit_refresh(connection: psycopg.Connection) -> None:
    """Set a session up for a refresh's own work: few large statements, which can be repeated.

    Its commits needn't wait for the disk: a crash loses the last of them together with the note
    that they were done.
    """
    settings = {
        "work_mem": _WORK_MEM,
        "jit": "off",
        "synchronous_commit": "off",
        # Should the client die, the server ends what still runs for it.
        "client_connection_check_interval": "2s",
    }
    _set(connection, settings)


def _set(connection: psycopg.Connection, settings: dict[str, str]) -> None:
    with connection.transaction():
        for name, value in settings.items():
            connection.execute(
                sql.SQL("SET SESSION {} = {}").format(sql.Identifier(name), sql.Literal(value))
            )


def limit_reads(connection: psycopg.Connection, settings: Settings) -> None:
    """Make a session of our own safe for reading user tables: read-only, with limits.

    Pins every setting that changes how a value is written as text, so that values of
    different sessions and sources compare.
    """
    limits = {
        "default_transaction_read_only": "on",
        "statement_timeout": str(settings.statement_timeout_ms),
        "lock_timeout": str(settings.lock_timeout_ms),
        "idle_in_transaction_session_timeout": "60000",
        "datestyle": "ISO, YMD",
        "intervalstyle": "postgres",
        "timezone": "UTC",
        "extra_float_digits": "1",
        "jit": "off",
        "work_mem": _WORK_MEM,
    }
    _set(connection, limits)
