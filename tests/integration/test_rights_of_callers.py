"""Whose rights an answer keeps to: through a worker, and for who says to be another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests import roles
from tests.fake_endpoint import Behaviour, FakeEndpoint, Received
from tests.rights import (
    QUESTION,
    Pool,
    result_of,
    visible_tables,
)
from tests.roles import as_role, found_in, role_name, seen_by, unseen_by

# --- through a worker


@contextmanager
def failing_chat(endpoint: FakeEndpoint) -> Iterator[None]:
    def rule(request: Received) -> Behaviour | None:
        return Behaviour(status=500) if request.path.endswith("/chat/completions") else None

    endpoint.rule = rule
    try:
        yield
    finally:
        endpoint.rule = None


def answers_through_worker(connection: psycopg.Connection) -> str:
    """Ask in each of the ways there are; return everything that comes back."""
    got = [
        result_of(connection, "SELECT * FROM coret.retrieve(%s)", QUESTION),
        result_of(connection, "SELECT coret.schema_slice(%s)", QUESTION),
        result_of(connection, "CALL coret.retrieve_call(%s)", QUESTION),
    ]
    row = connection.execute("SELECT coret.submit(%s)", [QUESTION]).fetchone()
    assert row
    connection.execute(
        f"DO $$ BEGIN FOR i IN 1..400 LOOP COMMIT; PERFORM pg_sleep(0.02); EXIT WHEN (SELECT state NOT IN ('waiting', 'taken') FROM coret.request WHERE request_id = {row[0]}); END LOOP; END $$".encode()
    )
    got.append(result_of(connection, "SELECT * FROM coret.fetch(%s)", row[0]))
    for relation in ("request", "retrieval", "retrieval_table"):
        got.append(result_of(connection, f"SELECT r::text FROM coret.{relation} r"))
    got.append(result_of(connection, "SELECT call_id, outcome, asked_by FROM coret.llm_call"))
    return "\n".join(got).replace(QUESTION, "")


@pytest.mark.parametrize("way", ["llm", "fallback"])
@pytest.mark.parametrize("role", roles.READERS)
def test_a_worker_answers_with_the_rights_of_who_asked(pool: Pool, role: str, way: str) -> None:
    roles.needs_dblink(pool.dsn)
    before = len(pool.endpoint.requests)
    with as_role(pool.dsn, role) as connection:
        if way == "fallback":
            with failing_chat(pool.endpoint):
                got = answers_through_worker(connection)
        else:
            got = answers_through_worker(connection)
    asked = pool.endpoint.requests[before:]
    prompts = [json.dumps(r.body) for r in asked if r.path.endswith("/chat/completions")]
    sent = "\n".join(prompts).replace(QUESTION, "")
    unseen = unseen_by(role, pool.known)
    assert found_in(got, unseen) == []
    assert found_in(sent, unseen) == []
    if role == "plain":
        assert prompts == []
        assert got.count("coret: The pool is empty") == 4
        return
    # Where the endpoint fails, a simpler request is tried too.
    assert len(prompts) == 4 if way == "llm" else len(prompts) > 4
    assert {
        "column": {"medlartab", "medlaropen", "zvomedlar"},
        "rows": {"damsontab", "damsonview", "damsonhid"},
        "full": {"medlartab", "quincetab", "quincehid", "zvhquince", "zvhmedlar", "damsontab"},
    }[role] <= set(found_in(got, seen_by(role, pool.known)))
    assert {
        "column": {"medlartab", "medlaropen", "zvomedlar"},
        "rows": {"damsontab", "damsonview", "damsonhid", "znotedamson"},
        "full": {"medlartab", "quincetab", "zvhquince", "zpuquince", "znotemedlar", "damsontab"},
    }[role] <= set(found_in(sent, seen_by(role, pool.known)))
    assert role_name(role) in got
    assert f"'{way}'" in got


def test_keepers_get_what_they_may_select_through_a_worker(pool: Pool) -> None:
    """Who keeps the catalog sees all of it there; a chat model is told of no more than it may read."""
    roles.needs_dblink(pool.dsn)
    for role in ("refresher", "admin"):
        with as_role(pool.dsn, role) as connection:
            assert "sorbtab" in visible_tables(connection)
            got = result_of(connection, "SELECT coret.schema_slice(%s)", QUESTION)
        assert "coret: The pool is empty" in got
    with as_role(pool.dsn, "owner") as connection:
        got = result_of(connection, "SELECT coret.schema_slice(%s)", QUESTION)
    assert {"sorbtab", "marrowtab", "zvhsorb"} <= set(found_in(got, seen_by("owner", pool.known)))


# --- nobody is somebody else


def test_a_reader_cant_name_another_role(pool: Pool) -> None:
    with as_role(pool.dsn, "column") as connection:
        assert visible_tables(connection) == {"medlartab", "crabview"}
        connection.execute("SELECT set_config('coret.reader', %s, false)", [role_name("full")])
        assert visible_tables(connection) == {"medlartab", "crabview"}
        held = connection.execute("SELECT * FROM coret.tables_holding('{zvoquincea}')").fetchall()
        assert held == []
        name = connection.execute("SELECT coret.reader_name()").fetchone()
        assert name == (role_name("column"),)
        full = role_name("full")
        for statement in (
            "SET ROLE coret_worker",
            f"SET ROLE {full}",
            f"INSERT INTO coret.request (question, deadline, asked_by) VALUES ('q', now(), '{full}')",
            "UPDATE coret.request SET asked_by = 'x'",
            "DELETE FROM coret.request",
            f"INSERT INTO coret.retrieval (question, k, tau, path, asked_by) VALUES ('q', 1, 0, 'llm', '{full}')",
            "UPDATE coret.retrieval SET asked_by = 'x'",
            # A number taken in advance would stop somebody else's answer.
            "INSERT INTO coret.retrieval (retrieval_id, question, k, tau, path) OVERRIDING SYSTEM VALUE VALUES (99999, 'q', 1, 0, 'llm')",
            "INSERT INTO coret.llm_call (call_id, use, endpoint, model_name, prompt_hash, seconds, outcome) OVERRIDING SYSTEM VALUE VALUES (99999, 'purpose', '', '', '', 0, '')",
            "INSERT INTO coret.retrieval_table (retrieval_id, rank, schema_name, table_name, relevance, role) VALUES (1, 99, '', '', 0, 'selected')",
            "SELECT prompt FROM coret.llm_call",
            "SELECT problem FROM coret.table_step",
            "SELECT secret FROM coret.seal_key",
            f"SELECT coret.sealed_role('{full}')",
            "SELECT coret.elsewhere('SELECT 1')",
            "SELECT coret.own_conninfo()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def is_refused(connection: psycopg.Connection, statement: str, seal: str) -> bool:
    """Tell whether a function says that the seal it is given is none."""
    try:
        with connection.transaction():
            connection.execute(statement.encode(), [seal])
    except psycopg.errors.InsufficientPrivilege as error:
        return str(error).startswith("coret: the seal")
    return False


def test_a_seal_is_good_for_one_role_and_one_transaction(pool: Pool) -> None:
    with as_role(pool.dsn, "column") as column, as_role(pool.dsn, "full") as full:
        own, others = (c.execute("SELECT seal FROM coret.seal").fetchone() for c in (column, full))
        assert own
        assert others
        assert others[0].endswith(role_name("full"))
        forged = {
            "made up": "0" * 64 + role_name("full"),
            "another role's": others[0],
            "an earlier transaction's": own[0],
            "with another name": own[0][:64] + role_name("full"),
            "empty": "",
            "only a name": role_name("full"),
        }
        with column.transaction():
            row = column.execute("SELECT seal FROM coret.seal").fetchone()
            assert row
            forged["of this transaction, with another name"] = row[0][:64] + role_name("full")
            taken = [
                name
                for name, seal in forged.items()
                for statement in (
                    "SELECT * FROM coret.tables_holding_as(%s, '{zvoquincea}')",
                    "SELECT * FROM coret.compatible_among_as(%s, ARRAY[1, 2])",
                    "SELECT coret.ask_worker(%s, 'q', 1, 0, 1)",
                )
                if not is_refused(column, statement, seal)
            ]
            assert taken == []
            held = column.execute(
                "SELECT table_ids FROM coret.tables_holding_as(%s, '{zvomedlara}')", [row[0]]
            ).fetchall()
            assert len(held) == 1


def test_a_functions_owner_and_set_role_count(pool: Pool) -> None:
    """As for any table: who runs a SECURITY DEFINER function has the rights of its owner."""
    roles.needs_dblink(pool.dsn)
    full, plain = role_name("full"), role_name("plain")
    with as_role(pool.dsn, "superuser") as superuser, as_role(pool.dsn, "plain") as connection:
        superuser.execute(
            f"""
            CREATE SCHEMA wrappers; GRANT USAGE ON SCHEMA wrappers TO {plain};
            CREATE FUNCTION wrappers.tables() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER RETURN (SELECT string_agg(table_name, ' ') FROM coret.catalog_table);
            CREATE FUNCTION wrappers.holding() RETURNS bigint LANGUAGE sql SECURITY DEFINER RETURN (SELECT count(*) FROM coret.tables_holding('{{zvoquincea}}'));
            CREATE FUNCTION wrappers.answer() RETURNS text LANGUAGE sql SECURITY DEFINER RETURN (SELECT string_agg(table_name, ' ') FROM coret.retrieve('quincetab'));
            ALTER FUNCTION wrappers.tables() OWNER TO {full};
            ALTER FUNCTION wrappers.holding() OWNER TO {full};
            ALTER FUNCTION wrappers.answer() OWNER TO {full};
            """.encode()
        )
        try:
            assert visible_tables(connection) == set()
            wrapped = [
                connection.execute(f"SELECT wrappers.{f}()".encode()).fetchone()
                for f in ("tables", "holding", "answer")
            ]
            assert all(wrapped)
            assert found_in(str(wrapped[0]), frozenset({"quincetab", "sorbtab"})) == ["quincetab"]
            assert wrapped[1] == (1,)
            assert found_in(str(wrapped[2]), frozenset({"quincetab", "sorbtab"})) == ["quincetab"]
        finally:
            superuser.execute("DROP SCHEMA wrappers CASCADE")
        superuser.execute(f"SET ROLE {role_name('column')}".encode())
        assert visible_tables(superuser) == {"medlartab", "crabview"}
        superuser.execute("RESET ROLE")
        assert "sorbtab" in visible_tables(superuser)


def test_a_worker_that_names_nobody_sees_nothing(pool: Pool) -> None:
    with as_role(pool.dsn, "worker") as connection:
        connection.execute("SET ROLE coret_worker")
        for name in (None, "", "no such role", "123", "-", '"quoted', "coret_worker"):
            if name is not None:
                connection.execute("SELECT set_config('coret.reader', %s, false)", [name])
            assert visible_tables(connection) == set()
            held = connection.execute("SELECT * FROM coret.tables_holding('{zvoquincea}')")
            assert held.fetchall() == []
