"""The embedded server as others use it: attach, keep up, take down, look."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from coret_pg.database.embedded import clients, cluster, failures, locks, processes
from coret_pg.database.embedded.account import choose_account
from coret_pg.database.embedded.binaries import find_binaries, usable_binaries
from coret_pg.database.embedded.clients import Attachment
from coret_pg.database.embedded.cluster import PostmasterFile, running_postmaster
from coret_pg.database.embedded.launch import (
    adopt_postmaster,
    conninfo,
    start_postmaster,
    wait_ready,
)
from coret_pg.database.embedded.layout import (
    DEFAULT_PORT,
    Place,
    is_temporary,
    locate,
    prepare,
    socket_folder,
)
from coret_pg.database.embedded.selftest import run_self_test
from coret_pg.errors import ServerError
from coret_pg.settings import Settings

__all__ = ["Attachment", "ServerState", "attach", "down", "server_state", "up"]

DATABASE = "coret"
TRIES = 3
# Longer than the slowest start or stop of another process.
START_LOCK_LIMIT_S = 240.0
GUARDIAN_LIMIT_S = 15.0
LOG_LIMIT = 8 * cluster.MEGABYTE


@dataclass(frozen=True)
class ServerState:
    """What is known of the embedded server without touching it."""

    running: bool
    pid: int | None
    kept: bool
    dsn: str | None
    data_dir: Path
    postgres_version: str | None
    log_file: Path


def attach(settings: Settings) -> Attachment:
    """Start the embedded server if it isn't running, and count as a client of it.

    Raises ServerError, with what to do, where it can't be set up or started.
    """
    return _attach(settings, keep=False)


def up(settings: Settings) -> Attachment:
    """Attach, and let the server stay when its last client leaves.

    Raises ServerError, with what to do, where it can't be set up or started.
    """
    return _attach(settings, keep=True)


def down(settings: Settings, *, force: bool = False) -> bool:
    """Stop the embedded server; tell whether it was running.

    Raises ServerError where other processes are attached and force isn't given, or where it
    can't be stopped.
    """
    folder = Path(settings.data_dir).expanduser() / "server"
    with clients.guard, _storage("Stopping the embedded server", folder):
        place = locate(settings)
        return place is not None and _down(place, force=force)


def server_state(settings: Settings) -> ServerState:
    """Return what is known of the embedded server; start and change nothing.

    Raises ServerError where its folder can't be read.
    """
    folder = Path(settings.data_dir).expanduser() / "server"
    with _storage("Looking at the embedded server", folder):
        place = locate(settings) or Place(folder)
        running = running_postmaster(place.pgdata)
        version = cluster.data_version(place.pgdata)
        dsn = None
        if running is not None and running.socket_dir and running.port:
            dsn = conninfo(running.socket_dir, running.port, DATABASE)
            try:
                with psycopg.connect(dsn, connect_timeout=2) as connection:
                    version = connection.info.parameter_status("server_version") or version
            except psycopg.OperationalError:
                dsn = None  # still starting, or stopping: nobody can connect
        return ServerState(
            running=running is not None,
            pid=running.pid if running else None,
            kept=place.keep.exists(),
            dsn=dsn,
            data_dir=place.pgdata,
            postgres_version=version,
            log_file=place.log,
        )


def _attach(settings: Settings, *, keep: bool) -> Attachment:
    folder = Path(settings.data_dir).expanduser() / "server"
    with clients.guard, _storage("Setting up the embedded server", folder):
        place = prepare(settings)
        with _start_lock(place) as start_fd:
            hold = clients.enter(place)
            try:
                running = _ensure_running(settings, place, start_fd)
                if keep:
                    locks.touch(place.keep)
            except BaseException:
                # Where the server was started, its guardian now stops it again.
                clients.leave(place.folder, hold)
                raise
        socket_dir, port = _address(running)
        return Attachment(place, hold, conninfo(socket_dir, port, DATABASE), socket_dir, port)


def _down(place: Place, *, force: bool) -> bool:
    with _start_lock(place):
        running = running_postmaster(place.pgdata)
        if running is None:
            place.keep.unlink(missing_ok=True)
            return False
        if not force and clients.has_others(place):
            raise ServerError(
                f"The embedded server in {place.folder} is in use by other processes",
                remedy="End them first, or stop it by force: their connections will break",
            )
        _stop(place, running)
        place.keep.unlink(missing_ok=True)
        clients.forget(place.folder)
        return True


def _ensure_running(settings: Settings, place: Place, start_fd: int) -> PostmasterFile:
    """Return the running server, started if need be; the start lock is held."""
    for _ in range(TRIES):
        running = _settled(place)
        if running is None:
            started = _start(settings, place, start_fd)
            if started is None:
                continue  # its guardian was killed at once, so it needs another
            return started
        _check_port(settings, place, running)
        socket_dir, port = _address(running)
        dsn = conninfo(socket_dir, port, "postgres")
        connection = wait_ready(place, dsn, running.pid, None)
        if connection is None:
            continue  # it ended while we looked, so it's ours to start
        with closing(connection):
            _complete(connection, settings, place)
        if not locks.held_exclusively(place.guardian_lock):
            adopt_postmaster(place, running.pid, _private(socket_dir, place))
        return running
    raise ServerError(
        f"The embedded server in {place.folder}, or its guardian, ended {TRIES} times while "
        "it was attached to",
        remedy=f"See why in {place.log}",
    )


def _settled(place: Place) -> PostmasterFile | None:
    """Return the running server, or None when there is none and no guardian either.

    In between, a guardian is about to end, or one whose starter was killed is still starting it.
    """
    found: list[PostmasterFile | None] = []

    def settled() -> bool:
        running = running_postmaster(place.pgdata)
        found.append(running)
        if running is None:
            return not locks.held_exclusively(place.guardian_lock)
        return running.socket_dir is not None

    if not processes.wait_until(settled, GUARDIAN_LIMIT_S):
        raise ServerError(
            f"Another process watches over a server in {place.folder} that can't be seen from "
            "here; it may run in another container",
            remedy="Stop it there first, or set CORET_DATA_DIR to another folder",
        )
    return found[-1]


def _start(settings: Settings, place: Place, start_fd: int) -> PostmasterFile | None:
    account = choose_account(settings.server_user, place.pgdata)
    found = find_binaries()
    if account is not None and not account.may("-x", place.folder):
        raise ServerError(
            f"The server's user {account.name} can't get to {place.folder}",
            remedy="Let that user pass through the folders above it, or set CORET_DATA_DIR",
        )
    binaries = usable_binaries(found, account)
    cluster.check_before_start(place)
    port = settings.server_port or DEFAULT_PORT
    if settings.server_port is not None:
        _check_free(settings.server_port)
    if cluster.data_version(place.pgdata) is None:
        cluster.create_data(place, binaries, account, start_fd)
    socket_dir = socket_folder(settings, place, account, port)
    cluster.clear_crashed(place, socket_dir, port)
    if failures.log_size(place.log) > LOG_LIMIT:
        place.log.replace(place.log.with_name(f"{place.log.name}.1"))
    command = cluster.server_command(
        binaries, place, socket_dir, port, listen=settings.server_port is not None
    )
    with start_postmaster(place, command, account, _private(socket_dir, place)) as guardian:
        pid = guardian.postmaster()
        dsn = conninfo(socket_dir, port, "postgres")
        connection = wait_ready(place, dsn, pid, guardian)
        if connection is None:
            return None
    with closing(connection):
        run_self_test(connection, place.log, binaries.version)
        _complete(connection, settings, place)
    listens = "127.0.0.1" if settings.server_port is not None else ""
    return PostmasterFile(pid=pid, port=port, socket_dir=socket_dir, listens=listens)


def _complete(connection: psycopg.Connection, settings: Settings, place: Place) -> None:
    """Make what a client expects of a running server: the database, the password."""
    try:
        found = connection.execute("SELECT FROM pg_database WHERE datname = 'coret'").rowcount
        if not found:
            connection.execute("CREATE DATABASE coret TEMPLATE template0")
            # The role has the name of our schema: "$user" would send a user's tables into it.
            connection.execute("ALTER ROLE coret SET search_path = public")
        if settings.server_port is not None and not place.password.exists():
            _set_password(connection, place)
    except psycopg.Error as error:
        text = str(error).strip()
        raise failures.explain(
            text, doing="Completing the embedded server", where=place.log
        ) from error


def _set_password(connection: psycopg.Connection, place: Place) -> None:
    password = secrets.token_urlsafe(24)
    # Only the hash is sent, so the password can't get into a log.
    hashed = connection.pgconn.encrypt_password(
        password.encode(), cluster.USER.encode(), b"scram-sha-256"
    ).decode()
    connection.execute(psycopg.sql.SQL("ALTER ROLE coret PASSWORD {}").format(hashed))
    new = place.password.with_name("password.new")
    new.unlink(missing_ok=True)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(f"{password}\n")
    new.replace(place.password)


def _stop(place: Place, running: PostmasterFile) -> None:
    pgdata = str(place.pgdata)
    try:
        stopped = processes.stop_server(
            lambda number: os.kill(running.pid, number),
            lambda limit_s: processes.wait_until(
                lambda: not processes.is_postmaster(running.pid, pgdata), limit_s
            ),
        )
    except PermissionError as error:
        raise ServerError(
            f"The embedded server in {place.folder} runs as another user",
            remedy="Stop it as that user, or as root",
        ) from error
    # A guardian reaps it and ends; the next start needs both to be gone.
    stopped = stopped and processes.wait_until(
        lambda: not locks.held_exclusively(place.guardian_lock), GUARDIAN_LIMIT_S
    )
    private = _private(running.socket_dir, place)
    if stopped and private is not None:
        with suppress(OSError):  # its guardian removed it, unless that was killed
            private.rmdir()
    if not stopped:
        raise ServerError(
            f"The embedded server in {place.folder} (pid {running.pid}) doesn't stop",
            remedy=f"See {place.log}; the last resort is kill -9 {running.pid}",
        )


def _address(running: PostmasterFile) -> tuple[Path, int]:
    if running.socket_dir is None or running.port is None:
        raise ServerError(
            "The embedded server runs without a socket", remedy="Stop it and start it again"
        )
    return running.socket_dir, running.port


def _check_port(settings: Settings, place: Place, running: PostmasterFile) -> None:
    wanted = settings.server_port
    if wanted is not None and (running.port != wanted or not running.listens):
        raise ServerError(
            f"The embedded server in {place.folder} runs already, without port {wanted}",
            remedy="Stop it first, so that it's started with that port, or unset CORET_SERVER_PORT",
        )


def _check_free(port: int) -> None:
    """Bind the port for an instant: Postgres's own message comes late and names no setting."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ServerError(
                f"The embedded server can't listen on 127.0.0.1 port {port}: {error.strerror}",
                remedy="Set CORET_SERVER_PORT to a free port, or unset it: the socket needs none",
            ) from error


def _private(socket_dir: Path | None, place: Place) -> Path | None:
    return socket_dir if socket_dir and is_temporary(socket_dir, place) else None


@contextmanager
def _start_lock(place: Place) -> Iterator[int]:
    fd = locks.open_lock(place.start_lock)
    try:
        if not processes.wait_until(lambda: locks.try_lock(fd), START_LOCK_LIMIT_S):
            raise ServerError(
                f"Another process has been starting or stopping the embedded server in "
                f"{place.folder} for {START_LOCK_LIMIT_S:.0f} seconds",
                remedy=f"See {place.log}, end that process and try again",
            )
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _storage(doing: str, folder: Path) -> Iterator[None]:
    """Turn what the system says of a folder into an error with a next step."""
    try:
        yield
    except OSError as error:
        raise failures.storage(error, doing, folder) from error
