"""The data folder of Postgres: made, checked, and cleaned of what a crash left behind."""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coret_pg.database.embedded import failures, processes
from coret_pg.database.embedded.account import Account, cannot_drop
from coret_pg.database.embedded.binaries import MAJOR, Binaries
from coret_pg.database.embedded.layout import Place, socket_file
from coret_pg.errors import ServerError

USER = "coret"
MEGABYTE = 1024 * 1024
SPACE_FIRST_START = 200 * MEGABYTE
SPACE_LATER = 32 * MEGABYTE
INITDB_LIMIT_S = 180
ORPHAN_LIMIT_S = 20.0
NEW_PREFIX = ".pgdata-"

# Written to postgresql.conf, so a user can change them; for a laptop with two cores.
DEFAULTS = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "max_wal_size": "512MB",
    "maintenance_work_mem": "128MB",
    "log_checkpoints": "off",
}


@dataclass(frozen=True)
class PostmasterFile:
    """What a running server wrote into postmaster.pid."""

    pid: int
    port: int | None
    socket_dir: Path | None
    listens: str


def read_postmaster_file(pgdata: Path) -> PostmasterFile | None:
    """Return what postmaster.pid says, however stale; None where it's missing or unreadable text.

    Raises OSError where another user's data folder can't be entered.
    """
    try:
        lines = (pgdata / "postmaster.pid").read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return None
    lines += [""] * (6 - len(lines))
    if not lines[0].strip().lstrip("-").isdigit():
        return None
    # A standalone backend (initdb, pg_upgrade) writes its pid as a negative number.
    return PostmasterFile(
        pid=abs(int(lines[0])),
        port=int(lines[3]) if lines[3].strip().isdigit() else None,
        socket_dir=Path(lines[4]) if lines[4].strip() else None,
        listens=lines[5].strip(),
    )


def running_postmaster(pgdata: Path) -> PostmasterFile | None:
    """Return the running server of that data folder, once it has written all of its pid file."""
    found = read_postmaster_file(pgdata)
    if found is None or not processes.is_postmaster(found.pid, str(pgdata)):
        return None
    return found


def data_version(pgdata: Path) -> str | None:
    """Return the major version that made the data; None where there is none."""
    try:
        return (pgdata / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return None


def check_before_start(place: Place) -> None:
    """Check the data's version and the free space of the disk.

    Raises ServerError where the server can't or shouldn't be started; nothing is changed.
    """
    version = data_version(place.pgdata)
    if version is not None and version != MAJOR:
        raise ServerError(
            f"The data in {place.pgdata} was made by Postgres {version}, this is Postgres "
            f"{MAJOR}. Nothing was changed",
            remedy="Set CORET_DATA_DIR to another folder, or dump the data with that version",
        )
    if version is None and place.pgdata.is_dir() and any(place.pgdata.iterdir()):
        raise ServerError(
            f"{place.pgdata} holds files, but no data of Postgres. Nothing was changed",
            remedy="Set CORET_DATA_DIR to another folder, or move these files away",
        )
    needed = SPACE_FIRST_START if version is None else SPACE_LATER
    free = shutil.disk_usage(place.folder).free
    if free < needed:
        raise ServerError(
            f"The disk that holds {place.folder} has {free // MEGABYTE} MB free, the embedded "
            f"server needs {needed // MEGABYTE} MB",
            remedy="Free some space, or set CORET_DATA_DIR to a folder on another disk",
        )


def create_data(place: Place, binaries: Binaries, account: Account | None, start_fd: int) -> None:
    """Make the data folder, complete or not at all.

    initdb inherits the start lock: if we are killed, whoever comes next waits until it has ended.
    Raises ServerError where initdb fails; OSError where its folder can't be made.
    """
    for left_over in place.folder.glob(f"{NEW_PREFIX}*"):
        shutil.rmtree(left_over)
    new = Path(tempfile.mkdtemp(prefix=NEW_PREFIX, dir=place.folder))
    try:
        if account is not None:
            account.own(new)
        _run_initdb(new, binaries, account, start_fd, place)
        if place.pgdata.is_dir():
            place.pgdata.rmdir()  # empty, as checked before
        new.rename(place.pgdata)
        _sync(place.folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # only there if something failed


def _run_initdb(
    new: Path, binaries: Binaries, account: Account | None, start_fd: int, place: Place
) -> None:
    command = [
        binaries.program("initdb"),
        f"--pgdata={new}",
        f"--username={USER}",
        "--locale-provider=builtin",
        "--locale=C.UTF-8",
        "--encoding=UTF8",
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--no-instructions",
        *(f"--set={name}={value}" for name, value in DEFAULTS.items()),
    ]
    drop: dict[str, Any] = account.drop() if account else {}
    doing = "Setting up the embedded server's data"
    try:
        result = subprocess.run(
            command,
            cwd="/",
            env=environment(),
            pass_fds=(start_fd,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=INITDB_LIMIT_S,
            check=False,
            **drop,
        )
    except subprocess.TimeoutExpired as error:
        raise ServerError(
            f"{doing} in {place.folder} took longer than {INITDB_LIMIT_S} seconds",
            remedy="Try again on a faster or less busy disk (CORET_DATA_DIR)",
        ) from error
    except PermissionError as error:
        if account is None:
            raise
        raise cannot_drop(account, error) from error
    if result.returncode:
        raise failures.explain(
            result.stdout,
            doing=doing,
            where=place.folder,
            signal_number=-result.returncode if result.returncode < 0 else None,
        )


def server_command(
    binaries: Binaries, place: Place, socket_dir: Path, port: int, *, listen: bool
) -> list[str]:
    """Return the command of the postmaster; what it fixes can't be changed by postgresql.conf."""
    quoted = str(socket_dir).replace('"', '""')
    options = {
        "port": str(port),
        "listen_addresses": "127.0.0.1" if listen else "",
        "unix_socket_directories": f'"{quoted}"',
        # Local connections need no password: only the server's own user (and root) may connect.
        "unix_socket_permissions": "0700",
        "logging_collector": "off",
        "log_destination": "stderr",
    }
    command = [binaries.program("postgres"), "-D", str(place.pgdata)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    return command


def clear_crashed(place: Place, socket_dir: Path, port: int) -> None:
    """Wait for the processes of a crashed server, and remove the files that name it.

    Call it only where no postmaster runs. Raises ServerError where such a process doesn't end.
    """
    pgdata = str(place.pgdata)
    if not processes.wait_until(lambda: not processes.servers_in(pgdata), ORPHAN_LIMIT_S):
        pids = ", ".join(str(pid) for pid in processes.servers_in(pgdata))
        raise ServerError(
            f"The embedded server in {place.folder} crashed, and its processes {pids} are still "
            f"at work after {ORPHAN_LIMIT_S:.0f} seconds",
            remedy=f"Wait until they end, or end them (kill -QUIT {pids.replace(',', '')}), "
            "and try again",
        )
    # Postgres itself sees that a pid is free, but takes a zombie, or any process with a
    # reused pid, for its former postmaster.
    (place.pgdata / "postmaster.pid").unlink(missing_ok=True)
    socket = socket_file(socket_dir, port)
    lock_file = socket.with_name(f"{socket.name}.lock")
    try:
        lines = lock_file.read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return
    if lines[1:2] == [pgdata]:
        lock_file.unlink(missing_ok=True)
        socket.unlink(missing_ok=True)


def environment() -> dict[str, str]:
    """Return the environment for Postgres: no PG variables of ours, messages in English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {"LC_ALL": "C"}


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
