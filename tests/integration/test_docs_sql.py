"""What the documentation shows of SQL is run, as the role it is shown for; every object explains itself."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from coret_pg.api import Coret
from coret_pg.worker import Worker

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "call-from-sql.md"
SCHEMAS = ("school", "clinic")


def statements(heading: str) -> list[str]:
    """The SQL statements of one section of the page."""
    section = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)
    text = next(part for part in section if part.startswith(heading))
    blocks = re.findall(r"^```sql\n(.*?)^```", text, re.M | re.S)
    return [s.strip() for block in blocks for s in re.split(r";\s*(?:--.*)?$", block, flags=re.M) if s.strip()]  # fmt: skip


@pytest.fixture
def analyst(demo_dsn: str) -> Iterator[str]:
    """The conninfo of a role that reads two schemas, made a reader as the page says; a worker runs."""
    name = f"analyst_{os.getpid()}"
    role = sql.Identifier(name)
    with psycopg.connect(demo_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        try:
            for statement in statements("Once, as an administrator"):
                connection.execute(statement.replace("analyst", name).encode())
        except psycopg.errors.FeatureNotSupported:
            connection.execute(sql.SQL("DROP ROLE {}").format(role))
            pytest.skip("this server has no dblink")
        for schema in map(sql.Identifier, SCHEMAS):
            connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role))
            connection.execute(
                sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(schema, role)
            )
        with Coret(demo_dsn, calls=2) as coret:
            worker = Worker(coret.database, coret.embedder, None)
            thread = threading.Thread(target=worker.run)
            thread.start()
            try:
                while not connection.execute("SELECT FROM coret.worker").fetchall():
                    assert thread.is_alive()
                yield conninfo.make_conninfo(demo_dsn, user=name)
            finally:
                worker.stop()
                thread.join(20)
        connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))


def test_a_readers_session_as_the_page_shows_it(analyst: str) -> None:
    session = statements("A session")
    assert len(session) >= 12
    with psycopg.connect(analyst, autocommit=True) as connection:
        for statement in session:
            rows = connection.execute(statement.encode()).fetchall()
            # Nothing is stale here; all else has something to show.
            assert rows or "coret.stale" in statement, statement
            text = str(rows)
            assert "hr." not in text
            assert "sales." not in text
        shown = re.search(
            r"^```\n +table_name.*?^```", PAGE.read_text(encoding="utf-8"), re.M | re.S
        )
        assert shown
        for row in connection.execute(session[0].encode()).fetchall():
            cells = [
                f"{{{','.join(cell)}}}" if isinstance(cell, list) else str(cell) for cell in row
            ]
            pattern = r" +\| +".join(map(re.escape, cells))
            assert re.search(pattern, shown[0]), cells


def test_the_ways_without_dblink_as_the_page_shows_them(analyst: str) -> None:
    call, submit, fetch = statements("Without dblink")
    with psycopg.connect(analyst, autocommit=True) as connection:
        called = connection.execute(call.encode()).fetchone()
        assert called
        assert called[1]["tables"][0]["table_name"] == "teachers"
        connection.execute(submit.encode())
        while True:
            rows = connection.execute(fetch.encode()).fetchall()
            if rows:
                break
        assert rows[0] == ("school.teachers",)


def test_the_library_too_keeps_to_the_rights_of_its_role(analyst: str) -> None:
    with Coret(analyst) as coret:
        answer = coret.retrieve("Which products did customers order, and who are the employees?")
        assert {c.schema_name for c in answer.candidates} == set(SCHEMAS)
        with coret.connection() as connection:
            mine = connection.execute("SELECT count(*) FROM coret.retrieval").fetchone()
    assert mine == (1,)


def test_every_object_of_ours_explains_itself(demo_dsn: str) -> None:
    with psycopg.connect(demo_dsn) as connection:
        silent = connection.execute(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'coret'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL"
            " UNION ALL SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'coret'::regnamespace AND relkind IN ('r', 'v')"
            " AND obj_description(oid, 'pg_class') IS NULL"
        ).fetchall()
        roles = connection.execute(
            "SELECT rolname FROM pg_roles WHERE rolname IN ('coret_reader', 'coret_worker', 'coret_refresher', 'coret_admin')"
            " AND NOT rolcanlogin AND NOT rolsuper AND shobj_description(oid, 'pg_authid') IS NOT NULL"
        ).fetchall()
    assert silent == []
    assert len(roles) == 4
