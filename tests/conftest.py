"""Fixtures: one server a session, one template database a kind, a copy of it a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo
from pytest_postgresql import factories

from coret_pg.api import Coret
from coret_pg.database.embedded import attach
from coret_pg.demo import build_warehouse
from tests.embedded_servers import server_folder, settings_for

REPOSITORY = Path(__file__).parent.parent
# Where the tests run instead of on the embedded server (tests/other_server.py): the DSN of a
# superuser of a server that asks no password of the roles which the tests create.
OTHER_SERVER = os.environ.get("CORET_TEST_DSN")
# These start embedded servers of their own.
collect_ignore = (
    ["integration/test_embedded_server.py", "integration/test_embedded_places.py"]
    if OTHER_SERVER
    else []
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is about the embedded server where the tests run on another."""
    for item in items:
        if OTHER_SERVER and "embedded_server" in item.name:
            item.add_marker(pytest.mark.skip(reason="the server of these tests is another"))


@dataclass(frozen=True)
class Server:
    """Where the session's server listens, in the terms pytest-postgresql asks for."""

    host: str
    port: int
    user: str = "coret"
    password: str | None = None
    options: str = ""
    maintenance_dbname: str = "postgres"
    template_dbname: str | None = None


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the configuration of whoever runs the tests out of them."""
    for name in list(os.environ):
        if name.startswith(("CORET_", "PG", "OPENAI_")) and name != "CORET_BENCH_DATA":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[Server]:
    """The server of the whole session: the embedded one, in a folder of its own, or another."""
    if OTHER_SERVER:
        with psycopg.connect(OTHER_SERVER) as connection:
            info = connection.info
            server = Server(info.host, info.port, info.user, info.password or None)
        yield server
        return
    with server_folder() as folder, attach(settings_for(folder)) as attachment:
        yield Server(host=str(attachment.socket_dir), port=attachment.port)


def _dsn(**parameters: Any) -> str:
    return conninfo.make_conninfo("", **{k: v for k, v in parameters.items() if v is not None})


def _load_demo_pool(**parameters: Any) -> None:
    dsn = _dsn(**{k: parameters.get(k) for k in ("host", "port", "user", "dbname", "password")})
    with server_folder() as folder, Coret(dsn) as coret:
        for file in build_warehouse(folder):
            coret.load(file)
        coret.init()
        coret.refresh()


# A database with nothing in it, and one that holds the demo warehouse, refreshed.
empty_template = factories.postgresql_noproc(dbname="empty", depends_on="embedded_server")
empty_database = factories.postgresql("empty_template")
demo_template = factories.postgresql_noproc(
    dbname="demo", depends_on="embedded_server", load=[_load_demo_pool]
)
demo_database = factories.postgresql("demo_template")


def _dsn_of(connection: psycopg.Connection) -> str:
    info = connection.info
    return _dsn(
        host=info.host, port=info.port, user=info.user, dbname=info.dbname,
        password=info.password or None,
    )  # fmt: skip


@pytest.fixture
def dsn(empty_database: psycopg.Connection) -> str:
    """The conninfo of a fresh, empty database."""
    return _dsn_of(empty_database)


@pytest.fixture
def demo_dsn(demo_database: psycopg.Connection) -> str:
    """The conninfo of a fresh copy of the demo warehouse, loaded and refreshed."""
    return _dsn_of(demo_database)


@pytest.fixture(scope="session")
def bench_data() -> Path:
    """The public benchmark data, where it is at hand."""
    named = os.environ.get("CORET_BENCH_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "bench"
    if not folder.is_dir():
        pytest.skip(f"the benchmark data is not at {folder}; set CORET_BENCH_DATA to its folder")
    return folder
