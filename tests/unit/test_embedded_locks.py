"""Locks between processes, and what is known of other processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coret_pg.database.embedded import clients, locks, processes
from coret_pg.database.embedded.layout import Place

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_SH if sys.argv[2] == "shared" else fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Holder:
    """Another process that holds the lock till it's killed."""

    def __init__(self, path: Path, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> "Holder":
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"held\n"
        return self

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_: object) -> None:
        self.kill()
        with self.process:
            pass


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    clients.forget(place.folder)


def test_missing_lock_file_is_held_by_nobody(tmp_path: Path) -> None:
    assert not locks.held_exclusively(tmp_path / "lock")
    assert list(tmp_path.iterdir()) == []


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with Holder(path, "exclusive") as holder:
        assert locks.held_exclusively(path)
        fd = locks.open_lock(path)
        try:
            assert not locks.try_lock(fd)
            assert not locks.try_lock(fd, shared=True)
            holder.kill()
            assert locks.try_lock(fd)
        finally:
            os.close(fd)


def test_lock_file_is_private_and_no_symlink(tmp_path: Path) -> None:
    locks.touch(tmp_path / "lock")
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic"):
        locks.touch(tmp_path / "link")
    assert not (tmp_path / "target").exists()


def test_locks_arent_inherited(tmp_path: Path) -> None:
    fd = locks.open_lock(tmp_path / "lock")
    try:
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


def test_one_process_holds_one_share(place: Place) -> None:
    first, second = clients.enter(place), clients.enter(place)
    assert first is second
    assert not clients.has_others(place)
    probe = locks.open_lock(place.clients_lock)
    try:
        clients.leave(place.folder, first)
        assert not locks.try_lock(probe), "the second use still counts"
        clients.leave(place.folder, second)
        assert locks.try_lock(probe)
    finally:
        os.close(probe)


def test_asking_for_others_keeps_our_share(place: Place) -> None:
    hold = clients.enter(place)
    with Holder(place.clients_lock, "shared") as other:
        assert clients.has_others(place)
        other.kill()
        assert not clients.has_others(place)
        probe = locks.open_lock(place.clients_lock)
        try:
            assert not locks.try_lock(probe), "we are still a client"
        finally:
            os.close(probe)
    clients.leave(place.folder, hold)


def test_others_where_we_are_no_client(place: Place) -> None:
    assert not clients.has_others(place)
    with Holder(place.clients_lock, "shared"):
        assert clients.has_others(place)


def test_leaving_after_the_server_was_taken_down(place: Place) -> None:
    old = clients.enter(place)
    clients.forget(place.folder)
    new = clients.enter(place)
    clients.leave(place.folder, old)
    assert new.count == 1
    probe = locks.open_lock(place.clients_lock)
    try:
        assert not locks.try_lock(probe), "the new use counts"
    finally:
        os.close(probe)


def test_zombie_is_not_alive() -> None:
    with subprocess.Popen(["true"]) as process:
        assert processes.wait_until(lambda: not processes.alive(process.pid), 10)
    assert not processes.alive(process.pid)


def test_alive() -> None:
    assert processes.alive(os.getpid())
    assert not processes.is_postmaster(os.getpid(), "/data")
    assert not processes.is_postmaster(0, "/data")
    assert not processes.is_postmaster(1, "/data")


@pytest.mark.skipif(not processes.HAS_PROC, reason="needs /proc")
def test_name_with_blanks_and_parentheses(tmp_path: Path) -> None:
    program = tmp_path / "a) Z (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "30"]) as process:
        assert processes.wait_until(lambda: "Z" in processes._command_name(process.pid), 10)
        assert processes._command_name(process.pid) == "a) Z (b"
        assert processes.alive(process.pid)
        process.kill()


@pytest.mark.skipif(not processes.HAS_PROC, reason="needs /proc")
def test_only_postgres_counts_as_a_server(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.symlink_to("/bin/sleep")
    pgdata = tmp_path / "pgdata"
    pgdata.mkdir()
    with (
        subprocess.Popen(["sleep", "30"], cwd=pgdata) as shell,
        subprocess.Popen([str(program), "30"], cwd=pgdata) as server,
    ):
        try:
            assert processes.wait_until(lambda: bool(processes.servers_in(str(pgdata))), 10)
            assert processes.servers_in(str(pgdata)) == [server.pid]
            assert not processes.is_postmaster(server.pid, str(pgdata)), "not in its arguments"
        finally:
            shell.kill()
            server.kill()


def test_without_proc_ps_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HAS_PROC", False)
    with subprocess.Popen(["sleep", "30"]) as process:
        assert processes.alive(process.pid)
        assert not processes.is_postmaster(process.pid, "/data")
        assert processes.servers_in("/data") == []
        process.kill()
    assert not processes.alive(process.pid)


def test_stopping_gets_harder() -> None:
    sent: list[int] = []
    assert not processes.stop_server(sent.append, lambda _: False)
    assert sent == [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL]
    sent.clear()
    assert processes.stop_server(sent.append, lambda _: len(sent) == 2)
    assert sent == [signal.SIGINT, signal.SIGQUIT]


def test_stopping_what_is_gone() -> None:
    def send(_: int) -> None:
        raise ProcessLookupError

    assert processes.stop_server(send, lambda _: False)
