"""One transaction a source; what is there stays unless it may be replaced."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from coret_pg.errors import DatabaseError, InputError, LoadError
from coret_pg.loading import LoadFailed, load_path


@pytest.fixture
def connection(dsn):
    with psycopg.connect(dsn) as opened:
        yield opened


def make(path, rows=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (a INT)")
        database.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(rows)])
        database.commit()
    return path


def count(connection, table):
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def schemas(connection):
    rows = connection.execute(
        "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$|^public$' "
        "ORDER BY 1"
    )
    return [row[0] for row in rows]


def test_what_is_loaded_is_committed(connection, dsn, tmp_path):
    load_path(connection, make(tmp_path / "a.sqlite"))
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    with psycopg.connect(dsn) as other:
        assert count(other, "a.t") == 1


def test_it_works_with_autocommit_too(dsn, tmp_path):
    with psycopg.connect(dsn, autocommit=True) as connection:
        load_path(connection, make(tmp_path / "a.sqlite"))
        assert count(connection, "a.t") == 1


def test_inside_of_the_callers_transaction_nothing_is_left_changed(connection, tmp_path):
    connection.execute("SET LOCAL search_path = public, pg_catalog")
    connection.execute("SET LOCAL statement_timeout = '7s'")
    load_path(connection, make(tmp_path / "a.sqlite"))
    with pytest.raises(LoadError):
        load_path(connection, tmp_path / "a.sqlite")
    assert connection.execute("SHOW search_path").fetchone() == ("public, pg_catalog",)
    assert connection.execute("SHOW statement_timeout").fetchone() == ("7s",)
    connection.rollback()
    assert schemas(connection) == []


def test_an_existing_schema_stays_unless_it_may_be_replaced(connection, tmp_path):
    file = make(tmp_path / "a.sqlite")
    load_path(connection, file)
    with pytest.raises(LoadError, match="'a' exists"):
        load_path(connection, file)
    file.unlink()
    make(file, rows=3)
    load_path(connection, file, replace=True)
    assert count(connection, "a.t") == 3
    file.write_bytes(b"damaged")
    with pytest.raises(LoadError):
        load_path(connection, file, replace=True)
    assert count(connection, "a.t") == 3


def test_a_schema_others_depend_on_is_not_replaced(connection, tmp_path):
    file = make(tmp_path / "a.sqlite")
    load_path(connection, file)
    connection.execute("CREATE VIEW public.mine AS SELECT * FROM a.t")
    connection.commit()
    with pytest.raises(LoadError, match=r"depend on it: public\.mine"):
        load_path(connection, file, replace=True)
    connection.execute("DROP VIEW public.mine")
    load_path(connection, file, replace=True)


def test_the_schema_can_be_named_for_one_source(connection, tmp_path):
    file = make(tmp_path / "a.sqlite")
    (report,) = load_path(connection, file, schema="Other one")
    assert report.schema == "Other one"
    assert load_path(connection, tmp_path, schema="b")[0].schema == "b"
    make(tmp_path / "c.sqlite")
    with pytest.raises(InputError, match="holds 2 source databases"):
        load_path(connection, tmp_path, schema="d")


@pytest.mark.parametrize("name", ["public", "coret", "information_schema", "pg_x", ""])
def test_reserved_schemas_are_refused(connection, tmp_path, name):
    file = make(tmp_path / "a.sqlite")
    with pytest.raises(InputError):
        load_path(connection, file, schema=name)
    if name:
        with pytest.raises(InputError):
            load_path(connection, make(tmp_path / f"{name}.sqlite"))


def test_a_long_schema_name_is_shortened(connection, tmp_path):
    (report,) = load_path(connection, make(tmp_path / f"{'x' * 70}.sqlite"))
    assert report.schema == "x" * 54 + "_" + report.schema[-8:]
    assert report.schema in report.remarks[0]


def test_a_bad_source_does_not_undo_the_others(connection, tmp_path):
    make(tmp_path / "a.sqlite")
    (tmp_path / "b.db").write_bytes(b"no database")
    make(tmp_path / "public.sqlite")
    make(tmp_path / "x" / "z.sqlite")
    make(tmp_path / "y" / "z.sqlite")
    make(tmp_path / "y" / "last.sqlite")
    with pytest.raises(LoadFailed) as caught:
        load_path(connection, tmp_path)
    assert [report.schema for report in caught.value.reports] == ["a", "last"]
    assert len(caught.value.failures) == 4
    text = str(caught.value)
    assert "2 of 6 sources were loaded (a, last)" in text
    assert "b.db is no SQLite database" in text
    assert "several sources would become the schema 'z'" in text
    assert schemas(connection) == ["a", "last"]


def test_a_source_does_not_replace_another_of_the_same_run(connection, tmp_path):
    (tmp_path / "a.sql").write_text(
        "--\n-- PostgreSQL database dump\n--\nCREATE TABLE public.t ();\n"
        "CREATE TABLE b.t ();\n-- PostgreSQL database dump complete\n"
    )
    make(tmp_path / "a_b.sqlite")
    with pytest.raises(LoadFailed, match="'a_b' was just loaded from another file") as caught:
        load_path(connection, tmp_path, replace=True)
    assert [report.schemas for report in caught.value.reports] == [["a", "a_b"]]


def test_one_bad_file_has_its_own_message(connection, tmp_path):
    (tmp_path / "b.db").write_bytes(b"no database")
    with pytest.raises(LoadFailed, match=r"b\.db is no SQLite database") as caught:
        load_path(connection, tmp_path / "b.db")
    assert caught.value.reports == []


def test_progress_is_told(connection, tmp_path):
    calls = []
    load_path(
        connection, make(tmp_path / "a.sqlite", rows=700), progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == ("t", 700, 700)
    assert len(calls) < 20


def test_an_interruption_leaves_nothing(connection, tmp_path):
    def interrupt(table, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_path(connection, make(tmp_path / "a.sqlite"), progress=interrupt)
    assert schemas(connection) == []


def test_a_role_that_may_not_create_schemas_is_told_so(dsn, connection, tmp_path):
    connection.execute("DROP ROLE IF EXISTS loading_nobody")
    connection.execute("CREATE ROLE loading_nobody")
    connection.commit()
    try:
        with psycopg.connect(dsn) as other:
            other.execute("SET ROLE loading_nobody")
            other.commit()
            with pytest.raises(DatabaseError, match="GRANT CREATE ON DATABASE"):
                load_path(other, make(tmp_path / "a.sqlite"))
    finally:
        connection.execute("DROP ROLE loading_nobody")


def test_a_lost_connection_is_an_error_of_the_database(dsn, connection, tmp_path):
    with psycopg.connect(dsn) as other:

        def kill(table, done, total):
            connection.execute("SELECT pg_terminate_backend(%s)", (other.info.backend_pid,))

        with pytest.raises(DatabaseError, match="connection was lost"):
            load_path(other, make(tmp_path / "a.sqlite"), progress=kill)
