"""What Postgres and the system say when something fails, turned into errors with a next step."""

import errno
import os
import re
from pathlib import Path

from coret_pg.errors import ServerError

TAIL_LINES = 15
OWN_SERVER = "pass --dsn with a Postgres server of your own"

_SIGNAL = re.compile(r"terminated by signal (\d+)")
_VERSION = re.compile(r"initialized by PostgreSQL version ([\d.]+)")


def log_size(path: Path) -> int:
    """Return where the log ends now, to tell later what was added."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def log_since(path: Path, offset: int) -> str:
    """Return what was written to the log after that offset; empty where it can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def last_lines(text: str) -> str:
    """Return the last lines of a log, for a message."""
    return "\n".join(text.strip().splitlines()[-TAIL_LINES:]) or "(nothing was written)"


def explain(text: str, *, doing: str, where: Path, signal_number: int | None = None) -> ServerError:
    """Return the error that fits what a program of Postgres wrote before it failed.

    `doing` is the phrase for what failed, `where` the log or folder the user should look at.
    """
    if signal_number is None and (match := _SIGNAL.search(text)):
        signal_number = int(match[1])
    if signal_number is not None:
        return _crashed(signal_number, doing)
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return disk_full(doing, where)
    if "Read-only file system" in text:
        return ServerError(
            f"{doing} failed: {where} lies on a read-only file system",
            remedy="Set CORET_DATA_DIR to a folder on a writable one",
        )
    if match := _VERSION.search(text):
        return ServerError(
            f"{doing} failed: the data was made by Postgres {match[1]}. Nothing was changed",
            remedy="Set CORET_DATA_DIR to another folder, or dump the data with that version",
        )
    if "pre-existing shared memory block" in text:
        return ServerError(
            f"{doing} failed: processes of an earlier server still use {where}",
            remedy="Wait until they end, or end them, and try again",
        )
    if "Address already in use" in text or "using socket file" in text:
        return ServerError(
            f"{doing} failed: its port or socket is used by another server "
            f"({_line_with(text, 'already in use', 'using socket file')})",
            remedy="Choose another CORET_SERVER_PORT or CORET_SERVER_SOCKET_DIR",
        )
    if "Cannot allocate memory" in text or "could not map anonymous shared memory" in text:
        return ServerError(
            f"{doing} failed: the system has too little free memory for the server",
            remedy="Free about 300 MB of memory and try again",
        )
    return ServerError(
        f"{doing} failed; the last lines it wrote:\n{last_lines(text)}",
        remedy=f"See {where}, correct what it names and try again, or {OWN_SERVER}",
    )


def disk_full(doing: str, where: Path) -> ServerError:
    """Return the error for a disk that filled up."""
    return ServerError(
        f"{doing} failed: the disk that holds {where} is full",
        remedy="Free some space, or set CORET_DATA_DIR to a folder on another disk",
    )


def storage(error: OSError, doing: str, where: Path) -> ServerError:
    """Return the error for a folder or file the system refused."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(doing, where)
    path = Path(os.fsdecode(error.filename)) if error.filename else where
    return ServerError(
        f"{doing} failed at {path}: {error.strerror or error}",
        remedy="Make that folder writable for the user that runs this, or set CORET_DATA_DIR",
    )


def _crashed(number: int, doing: str) -> ServerError:
    if number == 4:  # SIGILL
        return ServerError(
            f"{doing} failed: the processor refused an instruction (signal 4). This build of "
            "Postgres needs AVX2 instructions, which this machine doesn't have",
            remedy="Use --dsn with a server of your own",
        )
    return ServerError(
        f"{doing} failed: a process of Postgres was ended by signal {number}",
        remedy="If memory is short, free some and try again; else use --dsn with your own server",
    )


def _line_with(text: str, *needles: str) -> str:
    for line in text.splitlines():
        if any(needle in line for needle in needles):
            return line.strip()
    return ""
