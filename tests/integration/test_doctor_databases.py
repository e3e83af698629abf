"""The doctor at real databases: good ones, and each with one thing wrong."""

import contextlib
import queue
import select
import socket
import threading
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from coret_pg.database import findings
from coret_pg.database.migrate import SchemaState
from coret_pg.doctor import Check, examine
from coret_pg.settings import load_settings
from tests.embedded_servers import settings_for


@pytest.fixture(autouse=True)
def away_from_any_env_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def look(dsn, **more) -> dict[str, Check]:
    return {check.name: check for check in examine(load_settings(dsn=dsn, **more))}


def run(dsn, *statements):
    with psycopg.connect(dsn) as connection:
        for statement in statements:
            connection.execute(statement)


def statements_in(remedy):
    """The SQL that a remedy asks for."""
    return [part.strip() for part in remedy.partition(": ")[2].split(";")]


@pytest.fixture
def reader(request):
    """A role that may only log in, and its DSN for the test's database."""
    dsn = request.getfixturevalue("demo_dsn" if "demo_dsn" in request.fixturenames else "dsn")
    run(dsn, "CREATE ROLE doctor_reader LOGIN")
    yield conninfo.make_conninfo(dsn, user="doctor_reader")
    run(dsn, "DROP OWNED BY doctor_reader", "DROP ROLE doctor_reader")


def test_refreshed_pool_is_all_well(demo_dsn):
    checks = look(demo_dsn)
    assert {check.state for check in checks.values()} == {"ok"}, checks
    assert list(checks) == [
        *("coret_pg", "Python", "packages", "server", "database", "pooler", "encoding"),
        *("extension vector", "extension dblink", "extension pg_trgm", "extension pg_cron"),
        *("schema coret", "privileges", "readable tables", "row-level security"),
        *("embedding model", "pool", "embeddings", "chat model"),
    ]
    assert "dbname=" in checks["database"].found
    assert "(optional: " in checks["extension dblink"].found


def test_examining_writes_nothing(demo_dsn):
    def written():
        with psycopg.connect(demo_dsn) as connection:
            return connection.execute(
                "SELECT (SELECT count(*) FROM coret.retrieval), (SELECT count(*) FROM coret.job), "
                "(SELECT count(*) FROM coret.embedding_model), "
                "(SELECT string_agg(extname, ',' ORDER BY extname) FROM pg_extension)"
            ).fetchone()

    before = written()
    look(demo_dsn)
    assert written() == before


def test_empty_database_needs_init(dsn):
    checks = look(dsn)
    assert checks["schema coret"] == Check("schema coret", "fail", "absent", "Run `coret init`")
    assert checks["extension vector"].state == "warn"
    assert checks["privileges"].state == "ok"
    assert checks["readable tables"].found == "no table yet"
    assert not {"pool", "embeddings"} & set(checks)


def test_database_that_is_not_there(dsn):
    checks = look(conninfo.make_conninfo(dsn, dbname="nowhere"))
    assert checks["database"].state == "fail"
    assert '"nowhere" does not exist' in checks["database"].found
    assert checks["embedding model"].state == "ok"


def test_database_without_an_encoding(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        create = "CREATE DATABASE doctor_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'"
        connection.execute(f"{create} LOCALE_PROVIDER libc")
        try:
            checks = look(conninfo.make_conninfo(dsn, dbname="doctor_ascii"))
        finally:
            connection.execute("DROP DATABASE doctor_ascii")
    assert checks["encoding"].state == "fail"
    assert "SQL_ASCII" in checks["encoding"].found
    assert checks["schema coret"].found == "absent"


def test_connection_that_breaks_on_the_way(demo_dsn):
    checks = {}
    for check in examine(load_settings(dsn=demo_dsn)):
        checks[check.name] = check
        if check.name == "encoding":
            run(
                demo_dsn,
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE application_name = 'coret_pg doctor' AND datname = current_database()",
            )
    assert checks["extension vector"].state == "fail"
    assert "terminating connection" in checks["extension vector"].found
    assert "schema coret" not in checks
    assert checks["embedding model"].state == "ok"


def test_embedded_server(dsn):
    with psycopg.connect(dsn) as connection:
        pgdata = Path(connection.execute("SHOW data_directory").fetchone()[0])
    folder = next(above.parent for above in pgdata.parents if above.name == "server")
    checks = {check.name: check for check in examine(settings_for(folder))}
    assert checks["server"] == Check("server", "ok", f"embedded, its data in {pgdata}", None)
    assert checks["database"].state == "ok"
    assert "dbname=coret" in checks["database"].found
    assert checks["schema coret"].found == "absent"


@pytest.mark.parametrize(("version", "state"), [("0.7.4", "fail"), ("0.8.1", "warn")])
def test_old_pgvector(dsn, version, state):
    run(
        dsn,
        "CREATE EXTENSION vector",
        f"UPDATE pg_extension SET extversion = '{version}' WHERE extname = 'vector'",
    )
    check = look(dsn)["extension vector"]
    assert check.state == state
    assert version in check.found
    assert check.remedy.endswith("ALTER EXTENSION vector UPDATE")


# --- coret's schema


def test_schema_newer_than_the_package(demo_dsn):
    run(demo_dsn, "UPDATE coret.schema_version SET version_num = '9999'")
    checks = look(demo_dsn)
    assert checks["schema coret"].state == "fail"
    assert "newer than this package: revision 9999" in checks["schema coret"].found
    assert "pip install -U coret-pg" in checks["schema coret"].remedy
    assert "pool" not in checks


def test_schema_older_than_the_package(demo_dsn, monkeypatch):
    monkeypatch.setattr(findings, "schema_state", lambda _: SchemaState("0001", "0002"))
    check = look(demo_dsn)["schema coret"]
    assert (check.state, check.remedy) == ("fail", "Run `coret init` to upgrade it")
    assert "older" in check.found


def test_tables_that_came_and_went(demo_dsn):
    with psycopg.connect(demo_dsn) as connection:
        schema, table = connection.execute(
            "SELECT schema_name, table_name FROM coret.catalog_table LIMIT 1"
        ).fetchone()
        connection.execute(sql.SQL("DROP TABLE {} CASCADE").format(sql.Identifier(schema, table)))
        connection.execute("CREATE TABLE public.brand_new (a integer)")
    pool = look(demo_dsn)["pool"]
    assert pool.state == "warn"
    assert "1 dropped, renamed or recreated since, 1 new since" in pool.found
    assert pool.remedy == "Run `coret refresh`"


def test_skipped_and_due_tables(demo_dsn):
    run(
        demo_dsn,
        "UPDATE coret.table_step SET problem = 'no privilege' WHERE step = 'profile' AND "
        "table_id = (SELECT min(table_id) FROM coret.catalog_table)",
        "DELETE FROM coret.table_step WHERE step = 'purpose'",
    )
    pool = look(demo_dsn)["pool"]
    assert pool.state == "warn"
    assert "purpose: " in pool.found
    assert " due" in pool.found
    assert "profile: 1 skipped" in pool.found
    run(demo_dsn, pool.remedy.partition("; the reasons: ")[2])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("SET model_name = 'another'", "embedded with another by onnx"),
        ("SET is_active = false", "never refreshed"),
    ],
)
def test_other_embedding_model(demo_dsn, change, found):
    run(demo_dsn, f"UPDATE coret.embedding_model {change}")
    check = look(demo_dsn)["embeddings"]
    assert check.state == "warn"
    assert found in check.found
    assert "`coret refresh`" in check.remedy


# --- privileges


def test_role_without_privileges(dsn, reader):
    checks = look(reader)
    assert checks["extension vector"].remedy.startswith("Let a superuser run")
    privileges = checks["privileges"]
    assert privileges.state == "fail"
    run(dsn, *statements_in(privileges.remedy))
    assert look(reader)["privileges"].state == "ok"


def test_role_that_does_not_own_the_schema(demo_dsn, reader):
    checks = look(reader)
    schema = checks["schema coret"]
    assert schema.state == "fail"
    assert "permission denied" in schema.found
    assert checks["privileges"].state == "warn"
    assert "GRANT coret TO doctor_reader" in checks["privileges"].remedy
    run(demo_dsn, *statements_in(schema.remedy))
    run(
        demo_dsn,
        "GRANT USAGE ON SCHEMA school TO doctor_reader",
        "GRANT SELECT ON school.teachers TO doctor_reader",
    )
    checks = look(reader)
    assert checks["schema coret"].state == "ok"
    # Of the pool it sees what it may SELECT.
    assert (checks["pool"].state, checks["pool"].found) == (
        "ok",
        "1 tables, every step done for all",
    )
    assert checks["embeddings"].state == "ok"


def test_unreadable_tables_become_readable_by_the_remedy(dsn, reader):
    run(
        dsn,
        'CREATE SCHEMA "Two Words"',
        'CREATE TABLE "Two Words"."T.1" (a integer)',
        "CREATE TABLE public.seen (a integer)",
        "GRANT SELECT ON public.seen TO doctor_reader",
    )
    check = look(reader)["readable tables"]
    assert check.state == "warn"
    assert check.found == '1 of 2 can\'t be read by this role: "Two Words"."T.1"'
    run(dsn, *statements_in(check.remedy))
    assert look(reader)["readable tables"].found == "all 2, for this role"


def test_many_unreadable_schemas_take_one_grant(demo_dsn, reader):
    check = look(reader)["readable tables"]
    assert " more" in check.found
    assert statements_in(check.remedy) == ['GRANT pg_read_all_data TO "doctor_reader"']
    run(demo_dsn, *statements_in(check.remedy))
    assert look(reader)["readable tables"].state == "ok"


def test_row_level_security_of_this_role_only(dsn, reader):
    run(
        dsn,
        "CREATE TABLE public.filtered (a integer)",
        "ALTER TABLE public.filtered ENABLE ROW LEVEL SECURITY",
        "GRANT SELECT ON public.filtered TO doctor_reader",
    )
    assert look(dsn)["row-level security"].state == "ok"
    check = look(reader)["row-level security"]
    assert check.state == "warn"
    assert "1 of 1 tables" in check.found
    assert "public.filtered" in check.found


# --- poolers


class Pooler:
    """A pooler as PgBouncer is one: lends an idle backend, the last used first.

    For a transaction, or (`sessions`) for as long as a client stays.
    """

    def __init__(self, dsn, *, backends, sessions=False):
        self.info = conninfo.conninfo_to_dict(dsn)
        self.sessions = sessions
        self.idle = queue.LifoQueue()
        self.backends = [self.start_backend() for _ in range(backends)]
        self.threads = []

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.threads.append(threading.Thread(target=self.accept))
        self.threads[0].start()
        port = self.listener.getsockname()[1]
        self.dsn = conninfo.make_conninfo(
            host="127.0.0.1", port=port, user=self.info["user"], dbname=self.info["dbname"],
            sslmode="disable", gssencmode="disable",
        )  # fmt: skip
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for each in (self.listener, *self.backends):
            each.close()

    def start_backend(self):
        backend = socket.socket(socket.AF_UNIX)
        backend.connect(f"{self.info['host']}/.s.PGSQL.{self.info['port']}")
        names = ("user", "database", "client_encoding")
        values = (self.info["user"], self.info["dbname"], "utf8")
        body = b"\0\3\0\0" + b"".join(
            f"{name}\0{value}\0".encode() for name, value in zip(names, values, strict=True)
        )
        backend.sendall((len(body) + 5).to_bytes(4, "big") + body + b"\0")
        greeting = b""
        while not greeting.endswith(b"Z\0\0\0\5I"):
            greeting += backend.recv(65536)
        # Its cancel key is of no use to clients: theirs has a process id of our own making.
        at = greeting.index(b"K\0\0\0\x0c")
        self.greeting = greeting[: at + 5] + b"\0\0\0\1" + greeting[at + 9 :]
        self.idle.put(backend)
        return backend

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.threads.append(threading.Thread(target=self.serve, args=(client,)))
                self.threads[-1].start()

    def serve(self, client):
        backend = None
        with client:
            client.recv(65536)
            client.sendall(self.greeting)
            while True:
                ready, _, _ = select.select([client, backend] if backend else [client], [], [])
                if client in ready:
                    sent = client.recv(65536)
                    if sent[:1] in (b"", b"X"):
                        break
                    backend = backend or self.idle.get(timeout=5)
                    backend.sendall(sent)
                if backend in ready:
                    answer = backend.recv(65536)
                    # Before the client knows: what it does next may ask for it.
                    if answer.endswith(b"Z\0\0\0\5I") and not self.sessions:
                        self.idle.put(backend)
                        backend = None
                    client.sendall(answer)
            if backend:
                self.idle.put(backend)


@pytest.mark.parametrize("backends", [1, 2])
def test_transaction_pooler_is_noticed(dsn, backends):
    with Pooler(dsn, backends=backends) as pooler:
        checks = look(pooler.dsn)
        declared = look(pooler.dsn, pooler=True)["pooler"]
    assert checks["pooler"].state == "warn"
    assert "CORET_POOLER=true" in checks["pooler"].remedy
    assert checks["readable tables"].state == "ok"
    assert (declared.state, declared.remedy) == ("ok", None)
    assert "as CORET_POOLER says" in declared.found


def test_session_pooler_is_fine(dsn):
    with Pooler(dsn, backends=2, sessions=True) as pooler:
        check = look(pooler.dsn)["pooler"]
    assert (check.state, check.found) == ("ok", "one that pools sessions")


def test_pooler_set_without_one(dsn):
    check = look(dsn, pooler=True)["pooler"]
    assert (check.state, check.found) == ("ok", "none, so CORET_POOLER is not needed")
