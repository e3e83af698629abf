"""A pool whose every word is a tracer, roles with different rights on it, and what each may see.

The tables are named after trees. Of each tree there are tracers: words, numbers and ids that occur
nowhere else, so that wherever one turns up it tells which fact has got out.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from coret_pg import Coret
from coret_pg.database.sqlfiles import scripts
from tests.conftest import Server
from tests.fake_endpoint import FakeEndpoint, Received

# Role -> what it is a member of. Roles belong to the whole server: the prefix keeps them apart.
PREFIX = "rights_"
MEMBERSHIPS = {
    "nobody": None,
    "plain": "coret_reader",
    "column": "coret_reader",
    "rows": "coret_reader",
    "full": "coret_reader",
    "refresher": "coret_refresher",
    "admin": "coret_admin",
    "monitor": "pg_monitor",
    "worker": "coret_worker",
    # For the local socket's name (coret.own_conninfo).
    "owner": "pg_read_all_settings",
}
READERS = ("plain", "column", "rows", "full")
KEEPERS = ("refresher", "admin", "owner")
# Who reads what: (role, columns) of a table; None: all of them.
GRANTS: dict[str, dict[str, str | None]] = {
    "orchard.quincetab": {"full": None},
    "orchard.medlartab": {"full": None, "column": "medlarkey, medlaropen"},
    "orchard.damsontab": {"full": None, "rows": None},
    "orchard.damsonview": {"full": None, "rows": None},
    "orchard.damsonouter": {"full": None, "rows": None},
    "orchard.crabview": {"full": None, "column": "crabkey"},
    "cellar.marrowtab": {"public": None},
}
TREES = ("quince", "medlar", "damson", "sorb", "marrow")
_SCHEMAS = {"marrow": "cellar"}
# Ids that are no count and no rank of anything.
FIRST_TABLE_ID = 717000001
FIRST_COLUMN_ID = 818000001
FIRST_EDGE_ID = 919000001


def role_name(role: str) -> str:
    """The name of a role on the server."""
    return PREFIX + role if role in MEMBERSHIPS else role


def table_of(tree: str) -> str:
    return f"{_SCHEMAS.get(tree, 'orchard')}.{tree}tab"


@contextmanager
def new_database(server: Server, name: str) -> Iterator[str]:
    """Make an empty database for a `with` block, with the extensions a superuser has to make."""
    dsn = make_conninfo(
        "", host=server.host, port=server.port, user=server.user, dbname="postgres",
        **({"password": server.password} if server.password else {}),
    )  # fmt: skip
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(drop)
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield make_conninfo(dsn, dbname=name)
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(drop)


def make_roles(dsn: str) -> None:
    """Make ours and the tests' roles, where they are missing, as a superuser."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(scripts("rights")[0].encode())
        for role, group in MEMBERSHIPS.items():
            name = sql.Identifier(role_name(role))
            if not _value(connection, "SELECT to_regrole(%s)", role_name(role)):
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
            if group is not None:
                connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), name))
        database = sql.Identifier(connection.info.dbname)
        owner = sql.Identifier(role_name("owner"))
        connection.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, owner))


def make_extensions(dsn: str) -> None:
    """Make the extensions, which only a superuser may."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        if not _value(
            connection, "SELECT count(*) FROM pg_available_extensions WHERE name = 'dblink'"
        ):
            return
        connection.execute("CREATE EXTENSION dblink")
        # dblink lets a role that is no superuser in with a password alone, and the server of these
        # tests asks none: it runs as its owner here.
        connection.execute("ALTER FUNCTION dblink(text, text) SECURITY DEFINER")


def needs_dblink(dsn: str) -> None:
    """Skip a test that asks by coret.retrieve where the server has no dblink."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        if not _value(connection, "SELECT count(*) FROM pg_extension WHERE extname = 'dblink'"):
            pytest.skip("this server has no dblink")


def as_role(dsn: str, role: str, **more: Any) -> psycopg.Connection:
    """Log in as a role of the tests ("superuser": as the one that the DSN names)."""
    user = {} if role == "superuser" else {"user": role_name(role)}
    return psycopg.connect(make_conninfo(dsn, **user), autocommit=True, **more)


def _value(connection: psycopg.Connection, statement: str, *parameters: Any) -> Any:
    row = connection.execute(statement.encode(), parameters).fetchone()
    return row[0] if row else None


def make_tables(connection: psycopg.Connection) -> None:
    """Make the user tables, as their owner."""
    connection.execute("CREATE SCHEMA orchard; CREATE SCHEMA cellar")
    for number, tree in enumerate(TREES, start=1):
        connection.execute(
            f"""
            CREATE TABLE {table_of(tree)} ({tree}key int PRIMARY KEY, {tree}open text, {tree}hid text, {tree}num int, link int);
            INSERT INTO {table_of(tree)}
            SELECT {number}0 + n, 'zvo{tree}' || chr(96 + n), 'zvh{tree}' || chr(96 + n), 6{number}00000 + n, 40 + n % 9 FROM generate_series(1, 9) n;
            COMMENT ON TABLE {table_of(tree)} IS 'zct{tree}';
            COMMENT ON COLUMN {table_of(tree)}.{tree}open IS 'zco{tree}';
            COMMENT ON COLUMN {table_of(tree)}.{tree}hid IS 'zch{tree}';
            """.encode()
        )
    connection.execute(
        """
        -- Joins: one between tables that are read, one to a table that nobody may read.
        ALTER TABLE orchard.medlartab ADD COLUMN quincekey int;
        UPDATE orchard.medlartab SET quincekey = medlarkey - 10;
        ALTER TABLE orchard.medlartab ADD FOREIGN KEY (quincekey) REFERENCES orchard.quincetab;
        UPDATE orchard.quincetab SET link = quincekey + 30;
        ALTER TABLE orchard.quincetab ADD FOREIGN KEY (link) REFERENCES orchard.sorbtab;
        -- Rows that no reader sees.
        ALTER TABLE orchard.damsontab ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own_rows ON orchard.damsontab USING (damsonopen = current_user);
        CREATE VIEW orchard.damsonview WITH (security_invoker) AS SELECT damsonkey AS viewkey, damsonopen, damsonhid FROM orchard.damsontab;
        CREATE VIEW orchard.damsonouter AS SELECT viewkey AS outerkey, damsonopen AS outeropen FROM orchard.damsonview;
        -- A column that can't be read: a refresh notes why.
        CREATE VIEW orchard.crabview AS
        SELECT quincekey AS crabkey, ('zecrab' || quinceopen)::int AS crabbad FROM orchard.quincetab;
        """
    )
    set_grants(connection)


def set_grants(connection: psycopg.Connection) -> None:
    """Give the roles their rights on the user tables."""
    everyone = ", ".join(map(role_name, READERS))
    connection.execute(f"GRANT USAGE ON SCHEMA orchard TO {everyone}".encode())
    for table, grants in GRANTS.items():
        for role, columns in grants.items():
            what = f"SELECT ({columns})" if columns else "SELECT"
            connection.execute(f"GRANT {what} ON {table} TO {role_name(role)}".encode())


def written_purpose(request: Received) -> str:
    """Answer as a chat model: a purpose that names its tree, or a selection of all tables."""
    text = "\n".join(str(message["content"]) for message in request.body["messages"])
    shown = re.findall(r"^### (\S+)$", text, flags=re.MULTILINE)
    if shown:
        return '{"tables": [' + ", ".join(f'"{name}"' for name in shown) + "]}"
    table = re.search(r"^Table: (\S+)$", text, flags=re.MULTILINE)
    return f"Says zpu{table.group(1).removesuffix('tab')}." if table else "Says nothing."


def pool_settings(dsn: str, endpoint: FakeEndpoint, role: str, **more: Any) -> Coret:
    """Open the pool as a role, both models at the fake endpoint."""
    return Coret(
        make_conninfo(dsn, user=role_name(role)),
        embedding_provider="openai", embedding_model="fake", embedding_base_url=endpoint.base_url,
        embedding_api_key="k", llm_model="fake", llm_base_url=endpoint.base_url, llm_api_key="k",
        llm_max_retries=0, **more,
    )  # fmt: skip


def make_pool(dsn: str, endpoint: FakeEndpoint) -> None:
    """Make roles, tables and a refreshed pool whose owner is no superuser."""
    make_roles(dsn)
    make_extensions(dsn)
    with as_role(dsn, "owner") as owner, pool_settings(dsn, endpoint, "owner") as coret:
        make_tables(owner)
        coret.init()
        owner.execute(
            f"""
            ALTER TABLE coret.catalog_table ALTER COLUMN table_id RESTART WITH {FIRST_TABLE_ID};
            ALTER TABLE coret.catalog_column ALTER COLUMN column_id RESTART WITH {FIRST_COLUMN_ID};
            ALTER TABLE coret.join_edge ALTER COLUMN edge_id RESTART WITH {FIRST_EDGE_ID};
            """.encode()
        )
        for tree in ("medlar", "damson", "sorb", "marrow"):
            owner.execute(
                "INSERT INTO coret.purpose_note (schema_name, table_name, purpose) VALUES (%s, %s, %s)",
                [*table_of(tree).split("."), f"znote{tree}"],
            )
        coret.refresh()
        coret.decide_join("orchard.quincetab.link", "orchard.sorbtab.sorbkey", "accepted")


@dataclass(frozen=True)
class Tracers:
    """What tells of each tree, in any text."""

    of_name: frozenset[str] = frozenset()
    of_open: frozenset[str] = frozenset()
    of_hidden: frozenset[str] = frozenset()
    of_values: frozenset[str] = frozenset()
    of_open_values: frozenset[str] = frozenset()
    of_note: frozenset[str] = frozenset()
    of_purpose: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        return self.names | self.of_values | self.of_open_values | self.of_purpose

    @property
    def names(self) -> frozenset[str]:
        """What is no value, nor made of values."""
        return self.of_name | self.of_open | self.of_hidden | self.of_note


def tracers(connection: psycopg.Connection) -> dict[str, Tracers]:
    """Return the tracers of every table, by its tree or view; ids are read from the pool."""
    found = {}
    for tree in (*TREES, "damsonview", "damsonouter", "crabview"):
        table = table_of(tree).split(".")[1] if tree in TREES else tree
        ids = connection.execute(
            "SELECT t.table_id::text, c.column_id::text, c.column_name FROM coret.catalog_table t"
            " JOIN coret.catalog_column c USING (table_id) WHERE t.table_name = %s",
            [table],
        ).fetchall()
        columns = {name: column_id for _, column_id, name in ids}
        if tree in ("damsonview", "damsonouter"):
            # damsonview's columns are those of its table, but for one.
            own = {"viewkey"} if tree == "damsonview" else set(columns)
            found[tree] = Tracers(
                of_name=frozenset({table, ids[0][0]}),
                of_open=frozenset({*own, *columns.values()}),
                of_purpose=frozenset({f"zpu{tree}"}),
            )
        elif tree == "crabview":
            bad = {columns.pop("crabbad"), "crabbad"}
            found[tree] = Tracers(
                of_name=frozenset({table, ids[0][0]}),
                of_open=frozenset({"crabkey", *columns.values()}),
                of_hidden=frozenset(bad),
                of_values=frozenset({"zecrab"}),
                of_purpose=frozenset({f"zpu{tree}"}),
            )
        else:
            number = TREES.index(tree) + 1
            of_open = {f"{tree}key", f"{tree}open", f"zco{tree}"}
            of_open |= {columns[f"{tree}key"], columns[f"{tree}open"]}
            hidden = set(columns.values()) - of_open
            found[tree] = Tracers(
                of_name=frozenset({table, ids[0][0], f"zct{tree}"}),
                of_open=frozenset(of_open),
                of_hidden=frozenset({f"{tree}hid", f"{tree}num", f"zch{tree}", *hidden}),
                of_values=frozenset({f"zvh{tree}", f"6{number}0000"}),
                of_open_values=frozenset({f"zvo{tree}"}),
                of_note=frozenset({f"znote{tree}"} if tree != "quince" else ()),
                of_purpose=frozenset({f"zpu{tree}"} if tree == "quince" else ()),
            )
    return found


def seen_by(role: str, known: dict[str, Tracers]) -> frozenset[str]:
    """Return the tracers that a role may see."""
    if role in (*KEEPERS, "superuser"):
        return frozenset().union(*(t.all for t in known.values()))
    seen: set[str] = set()
    if role == "column":
        medlar, crab = known["medlar"], known["crabview"]
        seen |= medlar.of_name | medlar.of_open | medlar.of_open_values | medlar.of_note
        seen |= crab.of_name | crab.of_open
    if role in ("rows", "full"):
        # Neither values nor what a model wrote of them: rows are hidden.
        seen |= known["damson"].names | known["damsonview"].names | known["damsonouter"].names
    if role == "full":
        seen |= known["quince"].all | known["medlar"].all
        seen |= known["crabview"].names | known["crabview"].of_purpose
    return frozenset(seen)


def unseen_by(role: str, known: dict[str, Tracers]) -> frozenset[str]:
    """Return the tracers that a role may not see."""
    everything = frozenset().union(*(t.all for t in known.values()))
    # medlarquince's column bears the name of the key that it points to, and damsonview's columns
    # those of its table: a name is only secret where the role sees none of that name.
    shared = {"column": {"quincekey"}, "rows": set(), "full": set()}.get(role, set())
    return everything - seen_by(role, known) - shared


def found_in(text: str, wanted: frozenset[str]) -> list[str]:
    """Return which tracers are in a text, in whatever case, also within words."""
    low = text.lower()
    # Digits amid others, as in seconds, are no tracer.
    return sorted(
        t for t in wanted
        if (re.search(rf"(?<![\d.]){t}", low) if t.isdigit() else t.lower() in low)
    )  # fmt: skip


def run_program(dsn: str, program: str, *arguments: str, user: str | None = None) -> None:
    """Run one of the server's own programs."""
    with psycopg.connect(dsn) as connection:
        folder = _value(connection, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    target = make_conninfo(dsn, user=user) if user else dsn
    done = subprocess.run(
        [Path(folder) / program, "--dbname", target, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# --- what a role gets out of the schema


def relations(connection: psycopg.Connection) -> list[tuple[str, str, list[str]]]:
    """Return every table and view of ours: its name, its kind, its columns."""
    return connection.execute(
        "SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' ELSE 'view' END, array_agg(a.attname::text ORDER BY a.attnum)"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
        " WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'coret') AND c.relkind IN ('r', 'v', 'm', 'p', 'f')"
        " GROUP BY c.relname, c.relkind ORDER BY c.relname"
    ).fetchall()


def readable_columns(
    connection: psycopg.Connection, relation: str, columns: Sequence[str]
) -> list[str]:
    """Return the columns of a relation of ours that the session may SELECT."""
    row = connection.execute(
        "SELECT array_agg(n.name ORDER BY n.place) FILTER (WHERE has_schema_privilege(s.oid, 'USAGE') AND has_column_privilege(c.oid, n.name, 'SELECT'))"
        " FROM unnest(%s::text[]) WITH ORDINALITY AS n(name, place)"
        " JOIN pg_class c ON c.relname = %s JOIN pg_namespace s ON s.oid = c.relnamespace AND s.nspname = 'coret'",
        [list(columns), relation],
    ).fetchone()
    return (row[0] if row else None) or []


def said(error: psycopg.Error) -> str:
    """Return all that an error tells its caller."""
    diag = error.diag
    parts = (diag.message_primary, diag.message_detail, diag.message_hint, diag.context)
    return "\n".join(part for part in parts if part)
