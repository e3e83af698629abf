"""What other processes are doing: alive, a zombie, or a server of this data folder.

Standard library only: the guardian imports this.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PROC = Path("/proc")
HAS_PROC = (PROC / "self").is_dir()
POLL_S = 0.02

FAST_LIMIT_S = 20.0
IMMEDIATE_LIMIT_S = 10.0
KILL_LIMIT_S = 5.0


def alive(pid: int) -> bool:
    """Tell whether the process exists and can still do something (a zombie can't)."""
    state = _state(pid)
    return state is not None and state not in "ZX"


def is_postmaster(pid: int, pgdata: str) -> bool:
    """Tell whether the process is the postmaster of that data folder, and not a namesake's pid."""
    if pid <= 1 or not alive(pid):
        return False
    arguments = _arguments(pid)
    return bool(arguments) and Path(arguments[0]).name == "postgres" and pgdata in arguments


def servers_in(pgdata: str) -> list[int]:
    """Return the live postgres processes that work in that data folder (postmaster or orphans).

    Without /proc (macOS) the answer is empty; Postgres's own check of shared memory remains.
    """
    if not HAS_PROC:
        return []
    found = []
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # Every postgres process changes to its data folder; a user's shell there is no server.
            if str((entry / "cwd").readlink()) != pgdata:
                continue
        except OSError:
            continue  # gone meanwhile, or another user's: then it can't be a server of ours
        pid = int(entry.name)
        if _command_name(pid) == "postgres" and alive(pid):
            found.append(pid)
    return found


def wait_until(condition: Callable[[], bool], limit_s: float) -> bool:
    """Wait for the condition; tell whether it came true within the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def stop_server(send: Callable[[int], None], wait: Callable[[float], bool]) -> bool:
    """Stop a postmaster: a fast shutdown, else an immediate one, else SIGKILL.

    `send` delivers a signal to it, `wait` waits that many seconds for its end.
    """
    for number, limit_s in (
        (signal.SIGINT, FAST_LIMIT_S),
        (signal.SIGQUIT, IMMEDIATE_LIMIT_S),
        (signal.SIGKILL, KILL_LIMIT_S),
    ):
        try:
            send(number)
        except ProcessLookupError:
            return True
        if wait(limit_s):
            return True
    return False


def _state(pid: int) -> str | None:
    if not HAS_PROC:
        return _ps(pid, "stat")[:1] or None
    fields = _stat(pid)
    return fields[1] if fields else None


def _command_name(pid: int) -> str:
    fields = _stat(pid)
    return fields[0] if fields else ""


def _stat(pid: int) -> tuple[str, str] | None:
    """Return the command's name and the state's letter; None where there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may itself hold blanks and parentheses.
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()[0]


def _arguments(pid: int) -> list[str]:
    if not HAS_PROC:
        return _ps(pid, "command").split(" ")
    try:
        line = (PROC / str(pid) / "cmdline").read_bytes()
        return [os.fsdecode(part) for part in line.split(b"\0")]
    except OSError:
        return []


def _ps(pid: int, column: str) -> str:
    result = subprocess.run(
        ["ps", "-o", f"{column}=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return result.stdout.strip()
