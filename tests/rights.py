"""What the tests of rights share: the pool, the matrix of privileges, and all that a role can get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from tests import roles
from tests.conftest import Server
from tests.fake_endpoint import FakeEndpoint
from tests.roles import Tracers, as_role, role_name
from tests.workers import running_worker

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


@contextmanager
def rights_pool(embedded_server: Server) -> Iterator[Pool]:
    """Make the pool, put a worker to work, and have questions asked."""
    with (
        FakeEndpoint(default_text=roles.written_purpose) as endpoint,
        roles.new_database(embedded_server, "rights_pool") as dsn,
    ):
        roles.make_pool(dsn, endpoint)
        with (
            roles.pool_settings(dsn, endpoint, "owner") as coret,
            roles.pool_settings(dsn, endpoint, "worker") as answering,
            running_worker(answering),
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
        columns = ids_of(connection, "SELECT column_id FROM coret.catalog_column")
        edges = ids_of(connection, "SELECT edge_id FROM coret.join_edge")
        retrievals = ids_of(connection, "SELECT retrieval_id FROM coret.retrieval")
        requests = ids_of(connection, "SELECT request_id FROM coret.request")
        owner = ids_of(
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


def ids_of(connection: psycopg.Connection, statement: str) -> list[int]:
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


def visible_tables(connection: psycopg.Connection) -> set[str]:
    return {
        row[0]
        for row in connection.execute("SELECT table_name FROM coret.catalog_table").fetchall()
    }
