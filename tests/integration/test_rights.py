"""Who gets what out of the schema: every role, every function and view, and every word of a pool."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from coret_pg.offline.catalog import sync_catalog
from coret_pg.offline.source import PostgresSource
from tests import roles
from tests.conftest import Server
from tests.fake_endpoint import Behaviour, FakeEndpoint, Received
from tests.roles import Tracers, as_role, found_in, role_name, seen_by, unseen_by

SNAPSHOT = Path(__file__).parent / "rights_matrix.txt"
# Read now: the tests run without variables of ours.
RENEW = bool(os.environ.get("CORET_RENEW_SNAPSHOTS"))
ROLES = ("nobody", *roles.READERS, *roles.KEEPERS, "monitor", "superuser")
# Without a word of the pool in it; what a caller wrote itself is taken out of what it gets.
QUESTION = (
    "zqask quincetab medlartab damsontab damsonview sorbtab marrowtab crabview:"
    " zvoquincea zvomedlara zvhmedlarb zvodamsona zvhsorba zvomarrowa?"
)
# How many lines these have tells of the moment, not of rights.
OF_THE_MOMENT = ("view worker ", "view metrics ", "view stale ")
# Functions of their arguments alone: they read no table.
PURE = {
    "qualified_name", "index_type", "masked", "shown_level", "shown_values", "markdown_cell", "worker_lock", "pause_s", "check_call",
}  # fmt: skip
# Those that leave a question for a worker.
OF_WORKERS = {"retrieve", "schema_slice", "retrieve_call", "submit", "ask_worker"}


@dataclass(frozen=True)
class Pool:
    """The pool of this module, with a worker at work and with questions asked."""

    dsn: str
    endpoint: FakeEndpoint
    known: dict[str, Tracers]
    matrix: list[str]


@pytest.fixture(scope="module")
def pool(embedded_server: Server) -> Iterator[Pool]:
    with (
        FakeEndpoint(default_text=roles.written_purpose) as endpoint,
        roles.new_database(embedded_server, "rights_pool") as dsn,
    ):
        roles.make_pool(dsn, endpoint)
        with (
            roles.pool_settings(dsn, endpoint, "owner") as coret,
            roles.pool_settings(dsn, endpoint, "worker") as answering,
            roles.running_worker(answering),
            as_role(dsn, "superuser") as superuser,
        ):
            # Questions of others, that nobody else may see.
            coret.retrieve("zqowner orchards")
            for role in ("full", "rows"):
                with as_role(dsn, role) as connection:
                    connection.execute(
                        f"CALL coret.retrieve_call('zq{role} orchards', 20)".encode()
                    )
            yield Pool(dsn, endpoint, roles.tracers(superuser), matrix(dsn))


# --- the matrix of privileges


def matrix(dsn: str) -> list[str]:
    """Return a line for each routine, table and view: what each role may do with it.

    x: call; r, a, w, d: SELECT, INSERT, UPDATE, DELETE, with * where only some columns; then how
    many rows it sees.
    """
    lines = [_line("", ROLES)]
    with as_role(dsn, "superuser") as connection:
        users = [connection.info.user if r == "superuser" else role_name(r) for r in ROLES]
        connection.execute("SET search_path = public")
        routines = connection.execute(
            "SELECT CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END || ' ' || replace(p.oid::regprocedure::text, 'coret.', ''),"
            " array(SELECT has_function_privilege(u, p.oid, 'EXECUTE') FROM unnest(%s::text[]) WITH ORDINALITY AS x(u, place) ORDER BY place)"
            " FROM pg_proc p WHERE p.pronamespace = 'coret'::regnamespace ORDER BY 1",
            [users],
        ).fetchall()
        lines += [
            _line(name, ["x" if may else "-" for may in allowed]) for name, allowed in routines
        ]
        relations = roles.relations(connection)
        privileges = {
            relation: [_privileges(connection, user, relation) for user in users]
            for relation, _, _ in relations
        }
    counts = {}
    for role in ROLES:
        with as_role(dsn, role) as connection:
            for relation, _, _ in relations:
                counts[relation, role] = _count(connection, relation)
    for relation, kind, _ in relations:
        cells = [
            f"{letters or '-'}{counts[relation, role]}"
            for letters, role in zip(privileges[relation], ROLES, strict=True)
        ]
        lines.append(_line(f"{kind} {relation}", cells))
    return lines


def _line(name: str, cells: Sequence[str]) -> str:
    return (f"{name:<95} " + "".join(f"{cell:<11}" for cell in cells)).rstrip()


def _privileges(connection: psycopg.Connection, user: str, relation: str) -> str:
    row = connection.execute(
        "SELECT string_agg(CASE WHEN has_table_privilege(%(u)s, c.oid, p.name) THEN p.letter"
        "   WHEN p.letter <> 'd' AND has_any_column_privilege(%(u)s, c.oid, nullif(p.name, 'DELETE')) THEN p.letter || '*' END, '' ORDER BY p.place)"
        " FROM pg_class c, (VALUES (1, 'r', 'SELECT'), (2, 'a', 'INSERT'), (3, 'w', 'UPDATE'), (4, 'd', 'DELETE')) AS p(place, letter, name)"
        " WHERE c.relname = %(r)s AND c.relnamespace = 'coret'::regnamespace",
        {"u": user, "r": relation},
    ).fetchone()
    return (row[0] if row else None) or ""


def _count(connection: psycopg.Connection, relation: str) -> str:
    try:
        row = connection.execute(
            sql.SQL("SELECT count(*) FROM coret.{}").format(sql.Identifier(relation))
        ).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return ""
    return f":{row[0]}" if row else ""


def test_each_role_has_the_privileges_of_the_snapshot(pool: Pool) -> None:
    """Something new belongs into the snapshot: CORET_RENEW_SNAPSHOTS=1 writes it."""
    text = "\n".join(pool.matrix) + "\n"
    if RENEW:
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text.splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


# --- what each role gets


@contextmanager
def session(dsn: str, role: str) -> Iterator[tuple[psycopg.Connection, list[str]]]:
    """Log in as a role; what the server says besides is collected."""
    told: list[str] = []
    with as_role(dsn, role) as connection:
        connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        yield connection, told


def result_of(connection: psycopg.Connection, statement: str, *parameters: Any) -> str:
    """Return all that a statement gives its caller, or says; without what the caller gave it."""
    try:
        cursor = connection.execute(statement.encode(), parameters)
        text = "\n".join(str(row) for row in cursor.fetchall()) if cursor.description else ""
    except psycopg.Error as error:
        text = roles.said(error)
    given = [p for p in parameters if isinstance(p, str)]
    given += [v for p in parameters if isinstance(p, list) for v in p if isinstance(v, str)]
    for word in sorted(given, key=len, reverse=True):
        if not word.isdigit():
            text = text.replace(word, "")
    return text


def calls(dsn: str) -> list[tuple[str, str, list[Any]]]:
    """Return calls of every function that reads tables: its name, the statement, its arguments.

    They ask for every table, column, join, question and value there is.
    """
    with as_role(dsn, "superuser") as connection:
        tables = connection.execute(
            "SELECT t.table_id, t.schema_name, t.table_name, t.table_oid::bigint, e.embedding::text,"
            " array(SELECT c.column_name FROM coret.catalog_column c WHERE c.table_id = t.table_id ORDER BY attnum)"
            " FROM coret.catalog_table t JOIN coret.table_embedding e USING (table_id) ORDER BY 1"
        ).fetchall()
        columns = _ids(connection, "SELECT column_id FROM coret.catalog_column")
        edges = _ids(connection, "SELECT edge_id FROM coret.join_edge")
        retrievals = _ids(connection, "SELECT retrieval_id FROM coret.retrieval")
        requests = _ids(connection, "SELECT request_id FROM coret.request")
        owner = _ids(
            connection, "SELECT nspowner::bigint FROM pg_namespace WHERE nspname = 'coret'"
        )
    ids = [table[0] for table in tables]
    names = [f"{table[1]}.{table[2]}" for table in tables]
    phrases = [f"{kind}{tree}a" for kind in ("zvo", "zvh") for tree in roles.TREES]
    made: list[tuple[str, str, list[Any]]] = [
        ("compatible_among", "SELECT * FROM coret.compatible_among(%s)", [ids]),
        (
            "compatible_among_as",
            "SELECT * FROM coret.compatible_among_as((SELECT seal FROM coret.seal), %s)",
            [ids],
        ),
        ("column_names", "SELECT coret.column_names(%s)", [columns]),
        ("tables_holding", "SELECT table_ids FROM coret.tables_holding(%s)", [phrases]),
        (
            "tables_holding_as",
            "SELECT table_ids FROM coret.tables_holding_as((SELECT seal FROM coret.seal), %s)",
            [phrases],
        ),
        ("reader", "SELECT coret.reader()", []),
        ("reader_name", "SELECT coret.reader_name()", []),
        ("sees_all", "SELECT coret.sees_all()", []),
        ("sees_columns", "SELECT coret.sees_columns(%s)", [columns]),
    ]
    for table_id, schema, name, oid, embedding, column_names in tables:
        made += [
            ("candidates", "SELECT * FROM coret.candidates(%s::vector, 3, false)", [embedding]),
            ("candidates", "SELECT * FROM coret.candidates(%s::vector, 50, true)", [embedding]),
            (
                "adjust",
                "SELECT * FROM coret.adjust(%s, array_fill(0.5::real, ARRAY[cardinality(%s::bigint[])]), ARRAY[%s::bigint], 0, true)",
                [ids, ids, table_id],
            ),
            ("column_ids", "SELECT coret.column_ids(%s, %s, %s)", [schema, name, column_names]),
            ("table_named", "SELECT coret.table_named(%s)", [name]),
            ("compatible", "SELECT * FROM coret.compatible(%s, 0)", [f"{schema}.{name}"]),
            ("rows_are_filtered", "SELECT coret.rows_are_filtered(%s::oid)", [oid]),
            ("reads_table", "SELECT coret.reads_table(%s::oid)", [oid]),
            ("reads_whole", "SELECT coret.reads_whole(%s::oid)", [oid]),
            ("is_current", "SELECT coret.is_current(%s::oid, %s, %s)", [oid, schema, name]),
            ("sees_key", "SELECT coret.sees_key(%s, '{1}')", [table_id]),
            ("sees_purpose", "SELECT coret.sees_purpose(%s, true, %s::oid)", [table_id, owner[0]]),
        ]
        for is_remote in (False, True):
            made += [
                (f, f"SELECT coret.{f}(%s, %s)", [table_id, is_remote])
                for f in ("snapshot_markdown", "shown_purpose", "purpose_payload")
            ]
            made += [
                ("selection_payload", "SELECT coret.selection_payload(%s, 'it', %s)", [table_id, is_remote]),
                ("preview_payload", "SELECT * FROM coret.preview_payload(%s, %s)", [f"{schema}.{name}", is_remote]),
            ]  # fmt: skip
    made += [
        ("join_path", "SELECT * FROM coret.join_path(%s, %s, 4, 0)", [a, b])
        for a in names for b in names if a < b
    ]  # fmt: skip
    for column in columns:
        made.append(("sees_column", "SELECT coret.sees_column(%s)", [column]))
        made.append(("sees_values", "SELECT coret.sees_values(%s, %s::oid)", [column, owner[0]]))
    made += [("join_reasons", "SELECT coret.join_reasons(%s)", [edge]) for edge in edges]
    for retrieval in retrievals:
        made.append(("explain", "SELECT * FROM coret.explain(%s)", [retrieval]))
        made.append(("explain", "SELECT * FROM coret.explain(%s, 'json')", [retrieval]))
        made.append(("explain_json", "SELECT coret.explain_json(%s)", [retrieval]))
    for request in requests:
        made.append(("fetch", "SELECT * FROM coret.fetch(%s)", [request]))
        made.append(("answer_of", "SELECT coret.answer_of(%s)", [request]))
        made.append(
            (
                "answer_tables",
                "SELECT a.* FROM coret.request r, coret.answer_tables(r.answer) a WHERE request_id = %s",
                [request],
            )
        )
    return made


def _ids(connection: psycopg.Connection, statement: str) -> list[int]:
    return [row[0] for row in connection.execute(f"{statement} ORDER BY 1".encode()).fetchall()]


def all_of(dsn: str, role: str) -> dict[str, str]:
    """Return all text that a role gets: by the relation or function that gave it."""
    got: dict[str, str] = {}
    with session(dsn, role) as (connection, told):
        for relation, kind, columns in roles.relations(connection):
            readable = roles.readable_columns(connection, relation, columns)
            shown = sql.SQL(", ").join(sql.Identifier(column) for column in readable)
            statement = sql.SQL("SELECT {} FROM coret.{}").format(shown, sql.Identifier(relation))
            if readable:
                got[f"{kind} {relation}"] = result_of(connection, statement.as_string())
        for name, statement, parameters in calls(dsn):
            got[name] = got.get(name, "") + result_of(connection, statement, *parameters)
        got["notices"] = "\n".join(told)
    return got


@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_what_it_may_see_and_nothing_else(pool: Pool, role: str) -> None:
    got = {k: v.replace(QUESTION, "") for k, v in all_of(pool.dsn, role).items()}
    unseen = unseen_by(role, pool.known)
    leaks = {source: found for source, text in got.items() if (found := found_in(text, unseen))}
    assert leaks == {}
    assert set(found_in("\n".join(got.values()), seen_by(role, pool.known))) == seen_by(
        role, pool.known
    )
    # Questions of others are nobody's business.
    asked = found_in("\n".join(got.values()), frozenset({"zqowner", "zqfull", "zqrows"}))
    if role in (*roles.KEEPERS, "superuser"):
        assert asked == ["zqfull", "zqowner", "zqrows"]
    else:
        assert asked == ([f"zq{role}"] if role in ("full", "rows") else [])


def test_every_function_of_readers_is_looked_at(pool: Pool) -> None:
    with as_role(pool.dsn, "plain") as connection:
        callable_ = {
            row[0]
            for row in connection.execute(
                "SELECT proname FROM pg_proc WHERE pronamespace = 'coret'::regnamespace AND has_function_privilege(oid, 'EXECUTE')"
            ).fetchall()
        }
    assert {name for name, _, _ in calls(pool.dsn)} | PURE | OF_WORKERS == callable_


def test_an_unseen_table_is_not_told_from_one_that_is_not_there(pool: Pool) -> None:
    def told(connection: psycopg.Connection, name: str) -> list[tuple[str | None, str]]:
        answers = []
        for statement in (
            "SELECT coret.table_named(%(n)s)",
            "SELECT * FROM coret.compatible(%(n)s)",
            "SELECT * FROM coret.preview_payload(%(n)s)",
            "SELECT * FROM coret.join_path('orchard.medlartab', %(n)s)",
        ):
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(statement, {"n": name})
            answers.append((caught.value.sqlstate, roles.said(caught.value).replace(name, "")))
        return answers

    with as_role(pool.dsn, "full") as connection:
        absent = told(connection, "orchard.nothing")
        assert told(connection, "orchard.sorbtab") == absent
        assert told(connection, "cellar.marrowtab") == absent
        assert {state for state, _ in absent} == {"42P01"}


@pytest.mark.parametrize("role", ["plain", "column", "rows", "full"])
def test_a_function_of_the_readers_own_is_shown_no_hidden_row(pool: Pool, role: str) -> None:
    """The cheapest condition is tried first, unless a barrier keeps it from rows that are left out."""
    with session(pool.dsn, role) as (connection, told):
        connection.execute(
            "CREATE FUNCTION pg_temp.peek(value text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
            " AS $$ BEGIN RAISE NOTICE '%', value; RETURN true; END $$"
        )
        for relation, _, columns in roles.relations(connection):
            for column in roles.readable_columns(connection, relation, columns):
                connection.execute(
                    sql.SQL("SELECT 1 FROM coret.{} WHERE pg_temp.peek({}::text)").format(
                        sql.Identifier(relation), sql.Identifier(column)
                    )
                )
        peeked = "\n".join(told).replace(QUESTION, "")
    assert found_in(peeked, unseen_by(role, pool.known)) == []
    assert "fake" in peeked


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


def visible_tables(connection: psycopg.Connection) -> set[str]:
    return {
        row[0]
        for row in connection.execute("SELECT table_name FROM coret.catalog_table").fetchall()
    }


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


# --- the nearest tables are somebody else's


def test_k_candidates_in_spite_of_nearer_tables_one_may_not_see(pool: Pool) -> None:
    with as_role(pool.dsn, "superuser") as connection, connection.transaction(force_rollback=True):
        question = _crowd(connection, hidden=30, visible=12)
        connection.execute(f"SET LOCAL ROLE {role_name('full')}".encode())
        found = connection.execute(
            "SELECT table_name FROM coret.candidates(%s::vector, 10)", [question]
        ).fetchall()
        assert [row[0] for row in found] == [f"seen{n}" for n in range(1, 11)]


def test_k_candidates_by_the_index_too(pool: Pool) -> None:
    """Also where the index gives up before it has met a table that the reader may see."""
    with as_role(pool.dsn, "superuser") as connection:
        connection.execute("LOAD 'auto_explain'")
        plans: list[str] = []
        connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
        try:
            with connection.transaction(force_rollback=True):
                question = _crowd(connection, hidden=2100, visible=20)
                connection.execute("ANALYZE coret.table_embedding, coret.catalog_table")
                connection.execute(
                    "SET LOCAL auto_explain.log_min_duration = 0; SET LOCAL auto_explain.log_nested_statements = on; SET LOCAL client_min_messages = log"
                )
                connection.execute(f"SET LOCAL ROLE {role_name('full')}".encode())
                for most in (20000, 1):
                    connection.execute(f"SET LOCAL hnsw.max_scan_tuples = {most}".encode())
                    found = connection.execute(
                        "SELECT table_name FROM coret.candidates(%s::vector, 10)", [question]
                    ).fetchall()
                    assert [row[0] for row in found] == [f"seen{n}" for n in range(1, 11)]
        finally:
            connection.execute("ANALYZE coret.table_embedding, coret.catalog_table")
    assert "using table_embedding_hnsw_" in "\n".join(plans)


def _crowd(connection: psycopg.Connection, *, hidden: int, visible: int) -> str:
    """Put tables around a question: hidden ones near it, visible ones from seen1 on behind them."""
    connection.execute(
        f"""
        CREATE SCHEMA crowd; GRANT USAGE ON SCHEMA crowd TO {role_name("full")};
        DO $$ BEGIN
            FOR n IN 1..{visible} LOOP
                EXECUTE format('CREATE TABLE crowd.seen%s (a int); GRANT SELECT ON crowd.seen%s TO {role_name("full")}', n, n);
            END LOOP;
        END $$;
        INSERT INTO coret.catalog_table (source_id, table_oid, schema_name, table_name, kind, definition_hash)
        SELECT 1, to_regclass('crowd.seen' || n), 'crowd', 'seen' || n, 'table', '' FROM generate_series(1, {visible}) n
        UNION ALL SELECT 1, 'orchard.sorbtab'::regclass, 'crowd', 'unseen' || n, 'table', '' FROM generate_series(1, {hidden}) n;
        INSERT INTO coret.table_embedding (model_id, table_id, embedding, was_cut)
        SELECT (SELECT model_id FROM coret.embedding_model WHERE is_active), t.table_id,
               -- In the plane of the first two axes, by their angle.
               format('[%s,%s,0,0,0,0,0,0]', cos(x.angle), sin(x.angle))::vector, false
        FROM coret.catalog_table t
        CROSS JOIN LATERAL (SELECT substring(t.table_name FROM '[0-9]+')::float8 AS n) AS n
        CROSS JOIN LATERAL (SELECT CASE WHEN t.table_name LIKE 'seen%' THEN 0.5 + n.n / 1000 ELSE n.n / 10000 END AS angle) AS x
        WHERE t.schema_name = 'crowd';
        """.encode()
    )
    return "[1,0,0,0,0,0,0,0]"


# --- rights that change, and tables that change their place


def test_what_may_no_longer_be_read_leaves_old_answers(pool: Pool) -> None:
    full = role_name("full")
    with as_role(pool.dsn, "superuser") as connection:
        (retrieval,) = _ids(
            connection,
            "SELECT retrieval_id FROM coret.retrieval WHERE question = 'zqfull orchards'",
        )

        def shown() -> str:
            connection.execute(f"SET LOCAL ROLE {full}".encode())
            rows = [
                connection.execute(statement, [retrieval]).fetchall()
                for statement in (
                    "SELECT * FROM coret.explain(%s)",
                    "SELECT * FROM coret.explain(%s, 'json')",
                    "SELECT * FROM coret.retrieval_table WHERE retrieval_id = %s",
                )
            ]
            connection.execute("RESET ROLE")
            return str(rows)

        with connection.transaction(force_rollback=True):
            before = shown()
            assert {"medlartab", "quincetab"} <= set(found_in(before, pool.known["medlar"].of_name | pool.known["quince"].of_name))  # fmt: skip
            assert "medlartab.quincekey" in before or "'quincekey'" in before
            connection.execute(f"REVOKE SELECT ON orchard.medlartab FROM {full}".encode())
            # Nor as the partner of another one.
            assert found_in(shown(), pool.known["medlar"].all) == []
        with connection.transaction(force_rollback=True):
            # Nor where the columns were not noted.
            connection.execute(
                f"UPDATE coret.retrieval_table SET own_columns = NULL, partner_columns = NULL;"
                f"REVOKE SELECT ON orchard.medlartab FROM {full}".encode()
            )
            assert found_in(shown(), pool.known["medlar"].all) == []
        with connection.transaction(force_rollback=True):
            connection.execute(
                f"REVOKE SELECT ON orchard.medlartab FROM {full};"
                f"GRANT SELECT (medlarkey) ON orchard.medlartab TO {full}".encode()
            )
            # The column that it is joined by is read no more.
            assert "quincekey" not in shown()


def test_an_oid_that_has_become_another_tables_gives_nothing_away(pool: Pool) -> None:
    """As in a database that a dump was restored into, until the next refresh."""
    with as_role(pool.dsn, "superuser") as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "UPDATE coret.catalog_table SET table_oid = 'orchard.quincetab'::regclass WHERE table_name = 'sorbtab'"
        )
        ids = _ids(connection, "SELECT table_id FROM coret.catalog_table")
        connection.execute(f"SET LOCAL ROLE {role_name('full')}".encode())
        assert "sorbtab" not in visible_tables(connection)
        got = [
            connection.execute(statement.encode()).fetchall()
            for statement in (
                "SELECT * FROM coret.catalog_column",
                "SELECT * FROM coret.stale",
                "SELECT * FROM coret.tables_holding('{zvosorba,zvoquincea}')",
                "SELECT * FROM coret.join_edge",
                f"SELECT * FROM coret.compatible_among(ARRAY{ids})",
            )
        ]
        assert found_in(str(got).replace("zvosorba", ""), pool.known["sorb"].all) == []
        assert "zvoquincea" in str(got)


def test_a_dump_and_its_restoration_keep_every_right(
    pool: Pool, embedded_server: Server, tmp_path: Path
) -> None:
    dump = str(tmp_path / "dump")
    roles.run_program(
        pool.dsn, "pg_dump", "--format=custom", "--enable-row-security", f"--file={dump}",
        user=role_name("owner"),
    )  # fmt: skip
    before = matrix(pool.dsn)
    with roles.new_database(embedded_server, "rights_restored") as dsn:
        roles.run_program(dsn, "pg_restore", "--exit-on-error", dump)
        for role in ("column", "full"):
            text = "\n".join(all_of(dsn, role).values()).replace(QUESTION, "")
            assert found_in(text, unseen_by(role, pool.known)) == []
        # Tables have other OIDs here: the first step of a refresh finds them by their names.
        with (
            roles.pool_settings(dsn, pool.endpoint, "owner") as coret,
            coret.database.session(autocommit=True) as connection,
            closing(PostgresSource(coret.database, 1)) as source,
        ):
            sync_catalog(connection, source)
        after = matrix(dsn)
        assert [x for x in after if not x.startswith(OF_THE_MOMENT)] == [
            x for x in before if not x.startswith(OF_THE_MOMENT)
        ]
        for role in (*roles.READERS, "monitor", "owner"):
            text = "\n".join(all_of(dsn, role).values()).replace(QUESTION, "")
            assert found_in(text, unseen_by(role, pool.known)) == []
            assert set(found_in(text, seen_by(role, pool.known))) == seen_by(role, pool.known)


# --- what the whole rests on


def test_few_functions_have_their_owners_rights_and_none_is_open_to_all(pool: Pool) -> None:
    with as_role(pool.dsn, "superuser") as connection:
        definers = dict(
            connection.execute(
                "SELECT proname, (SELECT setting FROM unnest(proconfig) AS setting WHERE setting LIKE 'search_path=%')"
                " FROM pg_proc WHERE pronamespace = 'coret'::regnamespace AND prosecdef"
            ).fetchall()
        )
        # Another's functions and types are never found first: temporary ones last, none of public
        # but where pgvector is needed.
        assert definers == {
            "ask_worker": "search_path=pg_catalog, pg_temp",
            "tables_holding_as": "search_path=pg_catalog, pg_temp",
            "compatible_among_as": "search_path=pg_catalog, pg_temp",
            "analyze_tables": "search_path=pg_catalog, pg_temp",
            "build_hnsw_index": "search_path=pg_catalog, public, pg_temp",
        }
        open_to_all = connection.execute(
            "SELECT p.oid::regprocedure::text FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a"
            " WHERE p.pronamespace = 'coret'::regnamespace AND a.grantee = 0"
            " UNION ALL SELECT c.oid::regclass::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a"
            " WHERE c.relnamespace = 'coret'::regnamespace AND a.grantee = 0"
            " UNION ALL SELECT n.nspname FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a WHERE n.nspname = 'coret' AND a.grantee = 0"
        ).fetchall()
        assert open_to_all == []


def test_row_level_security_is_forced_and_has_policies_everywhere(pool: Pool) -> None:
    with as_role(pool.dsn, "superuser") as connection:
        unforced = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'coret'::regnamespace AND relkind IN ('r', 'p') AND NOT (relrowsecurity AND relforcerowsecurity)"
        ).fetchall()
        assert unforced == [("schema_version",)]
        # A view with its owner's rights shows readers what row-level security would not.
        own_rights = connection.execute(
            "SELECT relname, coalesce(reloptions::text, '') FROM pg_class WHERE relnamespace = 'coret'::regnamespace AND relkind = 'v'"
            " AND NOT coalesce(reloptions::text LIKE '%security_invoker=%', false) ORDER BY 1"
        ).fetchall()
        assert [row[0] for row in own_rights] == [
            "metrics", "seal", "stale", "status", "step_input", "worker",
        ]  # fmt: skip
        assert {name for name, options in own_rights if "security_barrier" in options} == {
            "seal", "stale",
        }  # fmt: skip
        keepers = connection.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'coret'::regnamespace AND c.relrowsecurity"
            " AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'keepers')"
        ).fetchall()
        assert keepers == []
