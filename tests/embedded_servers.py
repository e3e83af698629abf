"""What the tests of the embedded server share: folders, other processes, looks at a server."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from coret_pg.database.embedded import layout, locks, processes, server_state
from coret_pg.settings import Settings

AS_ROOT = os.geteuid() == 0
root_only = pytest.mark.skipif(not AS_ROOT, reason="needs root")
WAIT_S = 20.0

CLIENT = """
import os, subprocess, sys, time
from pathlib import Path
from coret_pg.database.embedded import attach, up
from coret_pg.settings import Settings
mode, folder = sys.argv[1:]
attachment = (up if mode == "up" else attach)(Settings(_env_file=None, data_dir=Path(folder)))
if mode == "child":
    child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
if mode == "fork":
    child = os.fork()
    if child == 0:
        os.close(1)
        time.sleep(60)
    print(child, flush=True)
print(attachment.dsn, flush=True)
sys.stdin.read()
os._exit(0)
"""


class Client:
    """Another process that attaches, and leaves when its stdin ends or it's killed."""

    def __init__(self, folder: Path, mode: str = "attach") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, mode, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(WAIT_S)
        self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder the server's user can get to (pytest's own is private), cleared afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="coret-test-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
        assert processes.wait_until(lambda: not working_in(folder), WAIT_S), working_in(folder)
    finally:
        for pid in working_in(folder):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder)


def working_in(folder: Path) -> list[int]:
    """The guardians and postmasters of servers below that folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            server_like = b"guardian" in line or b"postgres" in line
            if os.fsencode(folder) in line and server_like and processes.alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def settings_for(folder: Path, **other: Any) -> Settings:
    return Settings(_env_file=None, data_dir=folder, **other)


def settings_without_environment(base: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith(("PG", "CORET_"))]:
        monkeypatch.delenv(name)
    return settings_for(base / "data")


def place_of(settings: Settings) -> layout.Place:
    place = layout.locate(settings)
    assert place is not None
    return place


def stops(settings: Settings) -> bool:
    place = place_of(settings)
    return processes.wait_until(
        lambda: (
            not server_state(settings).running and not locks.held_exclusively(place.guardian_lock)
        ),
        WAIT_S,
    )


def stops_soon(settings: Settings) -> bool:
    return processes.wait_until(lambda: not server_state(settings).running, 0.3)


def guardian_pid(settings: Settings) -> int:
    return int(place_of(settings).guardian_lock.read_text())


def fetch(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def execute(dsn: str, *queries: str) -> None:
    with psycopg.connect(dsn) as connection:
        for query in queries:
            connection.execute(query.encode())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
