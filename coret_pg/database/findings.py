"""What `coret doctor` finds in a database; every look only reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import psycopg
from alembic.script import ScriptDirectory
from psycopg import sql
from psycopg.rows import dict_row

from coret_pg.database.migrate import (
    PGVECTOR_ADVISED,
    PGVECTOR_NEEDED,
    require_postgres,
    schema_state,
)
from coret_pg.database.sqlfiles import query
from coret_pg.resources import database_side

State = Literal["ok", "warn", "fail"]

SCHEMA = "schema coret"
_NO_ROW: dict[str, Any] = {}
# With more schemas than this, one role that reads them all is the shorter statement.
_MOST_SCHEMAS = 3


class Finding(NamedTuple):
    """What a look found, and what to do unless it is ok."""

    state: State
    found: str
    remedy: str | None = None


Look = Callable[[psycopg.Connection], Finding]


def server_version(connection: psycopg.Connection) -> Finding:
    """Say where we are; raise DatabaseError where the server is too old."""
    require_postgres(connection)
    info = connection.info
    return Finding(
        "ok",
        f"reached host={info.host} port={info.port} dbname={info.dbname} as {info.user}: "
        f"Postgres {info.parameter_status('server_version')}",
    )


def encoding(connection: psycopg.Connection) -> Finding:
    """Look at the database's encoding."""
    name = connection.info.parameter_status("server_encoding")
    if name == "UTF8":
        return Finding("ok", "UTF8")
    return Finding(
        "fail",
        f"{name}: not every name, value and question can be stored",
        "Move the tables to a database of encoding UTF8: CREATE DATABASE <name> TEMPLATE "
        "template0 ENCODING 'UTF8'",
    )


def vector(connection: psycopg.Connection) -> Finding:
    """Look at pgvector, and whether this role could create it."""
    facts = _row(connection, query("doctor_extension"), name="vector")
    return judge_vector(
        facts.get("installed"),
        facts.get("offered"),
        schema=facts.get("schema_name"),
        may_create=bool(facts.get("may_create")),
        database=connection.info.dbname,
    )


def judge_vector(
    installed: str | None,
    offered: str | None,
    *,
    schema: str | None = None,
    may_create: bool,
    database: str,
) -> Finding:
    """Return the finding about pgvector, by the versions installed and offered by the server."""
    needed, advised = (".".join(map(str, v)) for v in (PGVECTOR_NEEDED, PGVECTOR_ADVISED))
    install = f"Install pgvector {advised} or newer on the server (postgresql-<major>-pgvector)"
    here = f"in database {database}"
    best = _parts(offered or "")
    if installed is None:
        found = (
            f"not installed; the server offers {offered}"
            if offered
            else "not available on this server"
        )
        create = "CREATE EXTENSION vector"
        if best < PGVECTOR_NEEDED:
            return Finding("fail", found, f"{install}, then run {here}: {create}")
        if not may_create:
            return Finding("fail", found, f"Let a superuser run {here}: {create}")
        return Finding("warn", found, f"Run `coret init`, which runs: {create}")
    version = _parts(installed)
    if version >= PGVECTOR_ADVISED:
        return Finding("ok", f"{installed} in schema {schema}")
    is_usable = version >= PGVECTOR_NEEDED
    update = f"run {here}, as the extension's owner: ALTER EXTENSION vector UPDATE"
    is_there = best >= (PGVECTOR_ADVISED if is_usable else PGVECTOR_NEEDED)
    return Finding(
        "warn" if is_usable else "fail",
        f"{installed}: indexes can be corrupted by bugs that {advised} mends"
        if is_usable
        else f"{installed}; coret needs {needed} or newer",
        f"{update[0].upper()}{update[1:]}" if is_there else f"{install}, then {update}",
    )


def optional(name: str, use: str, connection: psycopg.Connection) -> Finding:
    """Look at an extension that coret does without."""
    facts = _row(connection, query("doctor_extension"), name=name)
    if facts.get("installed"):
        return Finding("ok", f"{facts['installed']} (optional: {use})")
    offer = "" if facts.get("offered") else ", nor available on this server"
    return Finding("ok", f"not installed{offer} (optional: {use})")


def schema(connection: psycopg.Connection) -> Finding:
    """Look at the revision of coret's schema."""
    state = schema_state(connection)
    if state.is_current:
        return Finding("ok", f"current, revision {state.current}")
    if state.current is None:
        return Finding("fail", "absent", "Run `coret init`")
    known = ScriptDirectory(str(database_side() / "migrations")).walk_revisions()
    if state.current in {script.revision for script in known}:
        return Finding(
            "fail",
            f"older than this package: revision {state.current}, not {state.newest}",
            "Run `coret init` to upgrade it",
        )
    return Finding(
        "fail",
        f"newer than this package: revision {state.current}, which it doesn't know",
        "Upgrade coret_pg: pip install -U coret-pg",
    )


def privileges(connection: psycopg.Connection) -> Finding:
    """Look at whether the role may create, or change, coret's schema."""
    facts = _row(connection, query("doctor_role"))
    role, owner = facts["role"], facts["schema_owner"]
    if owner is None and facts["may_create_schema"]:
        return Finding("ok", f"role {role} may create the schema coret")
    if owner is None:
        return Finding(
            "fail",
            f"role {role} may not create the schema coret",
            f"Let the database's owner run: GRANT CREATE ON DATABASE {facts['database']} TO {role}",
        )
    if facts["owns_schema"]:
        return Finding("ok", f"role {role} may change schema coret (owner: {owner})")
    return Finding(
        "warn",
        f"role {role} doesn't own schema coret: it can neither upgrade nor refresh it",
        f"Run `coret init` and `coret refresh` as {owner}, or let it run: GRANT {owner} TO {role}",
    )


def readable_tables(connection: psycopg.Connection) -> Finding:
    """Count the pool's tables that the role can't read."""
    facts = _access(connection)
    tables, unreadable = facts["tables"], facts["unreadable"]
    if not unreadable:
        return Finding("ok", f"all {tables}, for this role" if tables else "no table yet")
    role = sql.Identifier(connection.info.user).as_string()
    schemas = facts["unreadable_schemas"]
    listed = ", ".join(schemas)
    remedy = (
        f"Let an administrator run: GRANT pg_read_all_data TO {role}"
        if len(schemas) > _MOST_SCHEMAS
        else f"Let their owner run: GRANT USAGE ON SCHEMA {listed} TO {role}; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {listed} TO {role}"
    )
    return Finding(
        "warn",
        f"{unreadable} of {tables} can't be read by this role: "
        + _some(facts["unreadable_tables"], unreadable),
        remedy,
    )


def row_security(connection: psycopg.Connection) -> Finding:
    """Count the pool's tables whose rows are filtered for this role."""
    facts = _access(connection)
    filtered = facts["filtered"]
    if not filtered:
        return Finding("ok", "hides no rows from this role")
    return Finding(
        "warn",
        f"applies to this role in {filtered} of {facts['tables']} tables, so samples and profiles "
        f"may be partial: {_some(facts['filtered_tables'], filtered)}",
        "Refresh as a role that sees all rows (their owner, or one with BYPASSRLS), if the facts "
        "are to cover them",
    )


def pool(connection: psycopg.Connection) -> Finding:
    """Look at how far the pool is refreshed, and at tables that came or went since."""
    facts = _row(connection, query("doctor_pool").format(relations=query("doctor_relations")))
    steps = connection.execute("SELECT step, done, skipped FROM coret.status").fetchall()
    return judge_pool(facts["tables"], facts["vanished"], facts["added"], steps)


def judge_pool(
    tables: int, vanished: int, added: int, steps: list[tuple[str, int, int]]
) -> Finding:
    """Return the finding about the pool; `steps`: name, tables done, tables skipped."""
    if tables == 0 and added == 0:
        return Finding("warn", "empty", "Load tables (`coret load PATH`), then run `coret refresh`")
    if tables == 0:
        return Finding("warn", f"not refreshed yet: {added} tables wait", "Run `coret refresh`")
    due = {step: tables - done - skipped for step, done, skipped in steps}
    remarks = [f"{step}: {count} due" for step, count in due.items() if count > 0]
    skips = [f"{step}: {skipped} skipped" for step, _, skipped in steps if skipped]
    if vanished:
        remarks.append(f"{vanished} dropped, renamed or recreated since")
    if added:
        remarks.append(f"{added} new since")
    if not remarks and not skips:
        return Finding("ok", f"{tables} tables, every step done for all")
    remedy = (
        "Run `coret refresh`" if remarks else "Mend what hinders them, then run `coret refresh`"
    )
    if skips:
        remedy += "; the reasons: SELECT * FROM coret.table_step WHERE problem IS NOT NULL"
    return Finding("warn", f"{tables} tables; {', '.join([*remarks, *skips])}", remedy)


# Of these, none needs coret's schema to be there.
LOOKS: tuple[tuple[str, Look], ...] = (
    ("encoding", encoding),
    ("extension vector", vector),
    ("extension dblink", partial(optional, "dblink", "SQL functions that ask a model")),
    ("extension pg_trgm", partial(optional, "pg_trgm", "a search that forgives typing errors")),
    ("extension pg_cron", partial(optional, "pg_cron", "refreshing on a schedule")),
    (SCHEMA, schema),
    ("privileges", privileges),
    ("readable tables", readable_tables),
    ("row-level security", row_security),
)


def _row(connection: psycopg.Connection, statement: sql.SQL | sql.Composed, **values: Any) -> Any:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement, values or None).fetchone() or _NO_ROW


def _access(connection: psycopg.Connection) -> Any:
    return _row(connection, query("doctor_access").format(relations=query("doctor_relations")))


def _some(names: list[str], count: int) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{', '.join(names)}{more}"


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
