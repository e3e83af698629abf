"""CREATE EXTENSION coret: the same schema as `coret init` makes, upgraded and dumped by Postgres."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from coret_pg import __version__, resources
from coret_pg.api import Coret
from coret_pg.database import extension
from coret_pg.database.connection import Database
from coret_pg.database.migrate import initialise, require_schema, revert
from coret_pg.errors import SchemaError
from coret_pg.settings import load_settings
from tests.conftest import Server
from tests.embedded_servers import server_folder
from tests.integration.test_schema import drop_role, role_dsn, shape

NEXT = "999.0"
QUESTION = "Which city does each customer live in?"
# Rights and row-level security, beside what test_schema looks at; the order of grants is no matter.
_RIGHTS = """
SELECT 'relation', c.relname, c.relrowsecurity::text, c.relforcerowsecurity::text, array(SELECT unnest(c.relacl)::text ORDER BY 1)
FROM pg_class c WHERE c.relnamespace = 'coret'::regnamespace AND c.relkind IN ('r', 'v', 'S')
UNION ALL
SELECT 'column', a.attrelid::regclass::text, a.attname, NULL, array(SELECT unnest(a.attacl)::text ORDER BY 1)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'coret'::regnamespace AND a.attacl IS NOT NULL
UNION ALL
SELECT 'function', p.oid::regprocedure::text, NULL, NULL, array(SELECT unnest(p.proacl)::text ORDER BY 1)
FROM pg_proc p WHERE p.pronamespace = 'coret'::regnamespace
UNION ALL
SELECT 'policy', polrelid::regclass::text, polname, concat(polcmd, pg_get_expr(polqual, polrelid), '/', pg_get_expr(polwithcheck, polrelid)),
       array(SELECT oid::regrole::text FROM unnest(polroles) AS r(oid) ORDER BY 1)
FROM pg_policy JOIN pg_class c ON c.oid = polrelid WHERE c.relnamespace = 'coret'::regnamespace
UNION ALL
SELECT 'schema', obj_description(oid, 'pg_namespace'), NULL, NULL, array(SELECT unnest(nspacl)::text ORDER BY 1)
FROM pg_namespace WHERE nspname = 'coret'
"""


@dataclass(frozen=True)
class Shelf:
    """The folder a server looks for extensions in, and how a session is told of it."""

    folder: Path
    setting: str | None

    def reached(self, dsn: str) -> str:
        return make_conninfo(dsn, options=f"-c {self.setting}") if self.setting else dsn


@pytest.fixture(scope="session")
def shelf(embedded_server: Server) -> Iterator[Shelf]:
    """A folder for the extension's files; before Postgres 18 it can only be the server's own."""
    with psycopg.connect(
        host=embedded_server.host, port=embedded_server.port, user=embedded_server.user,
        password=embedded_server.password, dbname="postgres",
    ) as connection:  # fmt: skip
        version = connection.info.server_version
        own = Path(_scalar(connection, "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'"))
    if version >= 180000:
        with server_folder() as folder:
            (folder / "extension").mkdir()
            yield Shelf(folder / "extension", f"extension_control_path={folder}:$system")
        return
    folder = own / "extension"
    if not os.access(folder, os.W_OK):
        pytest.skip(f"no extension can be put into {folder}")
    with tempfile.TemporaryDirectory() as kept:
        for file in folder.glob("coret*"):
            shutil.move(file, kept)
        yield Shelf(folder, None)
        _clear(folder)
        for file in Path(kept).iterdir():
            shutil.move(file, folder)


@pytest.fixture
def extension_dsn(dsn: str, shelf: Shelf) -> Iterator[str]:
    """An empty database where this version of the extension can be created."""
    _clear(shelf.folder)
    extension.write_extension(shelf.folder)
    yield shelf.reached(dsn)
    _clear(shelf.folder)


@pytest.fixture
def next_version(
    extension_dsn: str, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Files of a next version, with one more table and one more function, beside this one's."""
    with server_folder() as folder:
        side = folder / "coret_pg" / "_database_side"
        for name in ("sql", "migrations"):
            shutil.copytree(resources.database_side() / name, side / name)
        head = list(extension.version_revisions().values())[-1]
        (side / "sql/schema/900_next.sql").write_text(
            "-- What is next.\n"
            "CREATE TABLE coret.next_thing (thing_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, said text NOT NULL);\n"
            "ALTER TABLE coret.purpose_note ADD COLUMN mood text NOT NULL DEFAULT 'plain';\n"
        )
        (side / "sql/functions/900_next.sql").write_text(
            "-- What is next.\n"
            "CREATE OR REPLACE FUNCTION coret.next_count() RETURNS bigint LANGUAGE sql STABLE\n"
            "RETURN (SELECT count(*) FROM coret.next_thing);\n"
        )
        (side / "migrations/versions/9001_next.py").write_text(
            "from alembic import op\n"
            "from coret_pg.database.migrate import run_schema_files\n"
            f"revision, down_revision = '9001', '{head}'\n"
            "def upgrade():\n"
            "    run_schema_files('900_next.sql')\n"
            "    op.execute(\"COMMENT ON TABLE coret.next_thing IS 'a:b'\")\n"
        )
        with (side / "sql/extension/versions.toml").open("a") as file:
            file.write(f'"{NEXT}" = "9001"\n')
        monkeypatch.setattr(resources, "PACKAGE", folder / "coret_pg")
        monkeypatch.setattr(extension, "__version__", NEXT)
        resources.database_side.cache_clear()
        extension.write_extension(shelf.folder)
        yield
        monkeypatch.undo()
        resources.database_side.cache_clear()


def _clear(folder: Path) -> None:
    for file in folder.glob("coret*"):
        file.unlink()


def _scalar(connection: psycopg.Connection, statement: str) -> str:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return str(row[0])


def whole_shape(connection: psycopg.Connection) -> set[str]:
    rights = connection.execute(_RIGHTS.encode()).fetchall()
    return {str(part) for part in shape(connection)} | {str(part) for part in rights}


def make_pool(connection: psycopg.Connection) -> None:
    connection.execute(
        "CREATE SCHEMA shop;"
        "CREATE TABLE shop.cities (city_id int PRIMARY KEY, city_name text NOT NULL);"
        "CREATE TABLE shop.customers (customer_id int PRIMARY KEY, customer_name text, city_id int);"
        "INSERT INTO shop.cities SELECT i, 'Town ' || i FROM generate_series(1, 30) i;"
        "INSERT INTO shop.customers SELECT i, 'Customer ' || i, i % 29 + 1 FROM generate_series(1, 200) i"
    )


def ask(dsn: str) -> set[str]:
    """Do what `coret refresh` does, then ask."""
    with Coret(dsn) as coret:
        coret.init()
        coret.refresh()
        return set(coret.retrieve(QUESTION).table_names)


def run(dsn: str, program: str, *arguments: str) -> None:
    """Run one of the server's own programs."""
    with psycopg.connect(dsn) as connection:
        folder = _scalar(connection, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    subprocess.run([Path(folder) / program, "--dbname", dsn, *arguments], check=True)


def test_the_extension_is_what_init_makes(extension_dsn: str) -> None:
    with (
        Database(load_settings(dsn=extension_dsn)) as database,
        database.session(autocommit=True) as connection,
    ):
        connection.execute("CREATE EXTENSION vector; CREATE EXTENSION coret")
        created = whole_shape(connection)
        assert (
            _scalar(connection, "SELECT extversion FROM pg_extension WHERE extname = 'coret'")
            == __version__
        )
        connection.execute("DROP EXTENSION coret")
        left = connection.execute(
            "SELECT 1 FROM pg_class WHERE relnamespace = 'coret'::regnamespace"
        )
        assert left.fetchall() == []
        # An empty schema is what is left: init takes it, but leaves saying what it is for.
        connection.execute("DROP SCHEMA coret")
        initialise(database)
        initialised = whole_shape(connection)
    assert len(created) > 150
    assert created == initialised


def test_init_leaves_a_current_extension_alone(extension_dsn: str) -> None:
    with (
        Database(load_settings(dsn=extension_dsn)) as database,
        database.session(autocommit=True) as connection,
    ):
        connection.execute("CREATE EXTENSION vector; CREATE EXTENSION coret")
        before = whole_shape(connection)
        assert initialise(database).is_current
        require_schema(connection, database.address)
        assert whole_shape(connection) == before
        with pytest.raises(SchemaError, match="DROP EXTENSION coret"):
            revert(database, "base")
        assert whole_shape(connection) == before


def test_a_pool_in_an_extension_answers(extension_dsn: str) -> None:
    with psycopg.connect(extension_dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector; CREATE EXTENSION coret")
        make_pool(connection)
    assert ask(extension_dsn) == {"shop.customers", "shop.cities"}


def test_a_plain_role_creates_it_where_vector_is(extension_dsn: str) -> None:
    """Also where pgvector is in a schema of its own."""
    with psycopg.connect(extension_dsn, autocommit=True) as superuser:
        superuser.execute("CREATE SCHEMA extensions")
        superuser.execute("CREATE EXTENSION vector SCHEMA extensions")
        role_dsn(superuser, "plain_creator")
        plain = make_conninfo(extension_dsn, user="plain_creator", options="")
        superuser.execute("GRANT USAGE ON SCHEMA extensions TO plain_creator")
        # As services do that keep extensions in a schema of their own.
        superuser.execute("ALTER ROLE plain_creator SET search_path = public, extensions")
        database = sql.Identifier(superuser.info.dbname)
        superuser.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO plain_creator").format(database))
        path = conninfo_to_dict(extension_dsn).get("options")
        if path:
            # A plain role can't set where extensions are looked for.
            value = str(path).removeprefix("-c extension_control_path=")
            superuser.execute(
                sql.SQL("ALTER ROLE plain_creator SET extension_control_path = {}").format(value)
            )
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION coret")
            make_pool(connection)
        assert ask(plain) == {"shop.customers", "shop.cities"}
    drop_role(extension_dsn, "plain_creator")


def test_a_schema_made_by_init_is_not_taken_over(extension_dsn: str) -> None:
    with (
        Database(load_settings(dsn=extension_dsn)) as database,
        database.session(autocommit=True) as connection,
    ):
        initialise(database)
        before = whole_shape(connection)
        with pytest.raises(psycopg.errors.DuplicateSchema, match="not empty") as caught:
            connection.execute("CREATE EXTENSION coret")
        assert "coret init" in str(caught.value.diag.message_hint)
        assert whole_shape(connection) == before


def test_vector_is_not_put_into_our_schema(extension_dsn: str) -> None:
    """CASCADE does so for a role of our name: the first schema of its path is "$user"."""
    with psycopg.connect(extension_dsn, autocommit=True) as connection:
        connection.execute("SET search_path = coret, public")
        with pytest.raises(psycopg.errors.DuplicateSchema, match="vector") as caught:
            connection.execute("CREATE EXTENSION coret CASCADE")
        assert "CREATE EXTENSION vector SCHEMA public;" in str(caught.value.diag.message_hint)
        connection.execute("CREATE EXTENSION vector SCHEMA public")
        connection.execute("CREATE EXTENSION coret")


@pytest.mark.usefixtures("next_version")
def test_an_update_makes_what_a_new_installation_makes(extension_dsn: str) -> None:
    with (
        Database(load_settings(dsn=extension_dsn)) as database,
        database.session(autocommit=True) as connection,
    ):
        connection.execute("CREATE EXTENSION vector")
        connection.execute(f"CREATE EXTENSION coret VERSION '{__version__}'".encode())
        connection.execute(
            "INSERT INTO coret.purpose_note (schema_name, table_name, purpose) VALUES ('a', 'b', 'c')"
        )
        with pytest.raises(SchemaError, match=rf"{__version__}.*ALTER EXTENSION coret UPDATE"):
            initialise(database)
        connection.execute("ALTER EXTENSION coret UPDATE")
        state = initialise(database)
        assert (state.current, state.is_current) == ("9001", True)
        assert connection.execute("SELECT purpose, mood FROM coret.purpose_note").fetchall() == [
            ("c", "plain")
        ]
        assert _scalar(connection, "SELECT coret.next_count()") == "0"
        updated = whole_shape(connection)
        saved = set(connection.execute(_SAVED.encode()).fetchall())
        connection.execute("DROP EXTENSION coret")
        connection.execute("CREATE EXTENSION coret")
        assert whole_shape(connection) == updated
        assert set(connection.execute(_SAVED.encode()).fetchall()) == saved
        assert ("coret.next_thing", True) in {(name, whole == "") for name, whole in saved}
        assert "coret.next_thing_thing_id_seq" in {name for name, _ in saved}


# What pg_dump saves, and of which tables only some rows.
_SAVED = """
SELECT c.oid::regclass::text, c.condition FROM pg_extension AS e, unnest(e.extconfig, e.extcondition) AS c(oid, condition)
WHERE e.extname = 'coret'
"""


def contents(connection: psycopg.Connection) -> dict[str, list[str]]:
    """Return the rows of each table of ours that pg_dump saves, as text."""
    found = {}
    for (name,) in connection.execute(
        "SELECT c.oid::regclass::text FROM pg_extension AS e JOIN pg_class AS c ON c.oid = ANY (e.extconfig)"
        " WHERE e.extname = 'coret' AND c.relkind = 'r' ORDER BY 1"
    ).fetchall():
        rows = connection.execute(f"SELECT t::text FROM {name} AS t ORDER BY 1".encode()).fetchall()
        found[name] = [row[0] for row in rows]
    return found


def test_dump_and_restore_keep_the_data(extension_dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(extension_dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector; CREATE EXTENSION coret")
        make_pool(connection)
        assert ask(extension_dsn) == {"shop.customers", "shop.cities"}
        connection.execute(
            "INSERT INTO coret.purpose_note (schema_name, table_name, purpose) VALUES ('shop', 'cities', 'Towns.')"
        )
        with Coret(extension_dsn) as coret:
            coret.decide_join("shop.customers.city_id", "shop.cities.city_id", "accepted")
        connection.execute(
            "INSERT INTO coret.source (source_name, kind) VALUES ('there', 'postgres')"
        )
        name = connection.info.dbname
        before = contents(connection)
        run(extension_dsn, "pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}")
        connection.execute(f'CREATE DATABASE "{name}_restored"'.encode())
    restored = make_conninfo(extension_dsn, dbname=f"{name}_restored")
    try:
        run(restored, "pg_restore", "--exit-on-error", str(tmp_path / "dump"))
        with psycopg.connect(restored, autocommit=True) as connection:
            after = contents(connection)
            # Each installation notes when it came to know of itself.
            here = [row for row in after.pop("coret.source") if ",there," in row]
            assert here == [row for row in before.pop("coret.source") if ",there," in row]
            after_patterns, before_patterns = (
                {row.split(",")[0] for row in found.pop("coret.deny_pattern", [])}
                for found in (after, before)
            )
            assert after_patterns == before_patterns
            assert after == before
            assert len(before["coret.retrieval"]) == 1
            assert len(before["coret.join_edge"]) >= 1
        assert ask(restored) == {"shop.customers", "shop.cities"}
        with psycopg.connect(restored, autocommit=True) as connection:
            # New ids go on after the restored ones.
            assert len(contents(connection)["coret.retrieval"]) == 2
    finally:
        with psycopg.connect(extension_dsn, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}_restored" WITH (FORCE)'.encode())


def test_dumps_of_a_deny_list_restore(extension_dsn: str, tmp_path: Path) -> None:
    """The patterns that come with an installation are not dumped; added ones are."""
    with psycopg.connect(extension_dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector; CREATE EXTENSION coret")
        if _scalar(connection, "SELECT to_regclass('coret.deny_pattern') IS NULL") == "True":
            pytest.skip("this revision has no deny-list")
        connection.execute("SELECT coret.deny('shoe[-_ ]?size')")
        known = connection.execute("SELECT pattern, matches FROM coret.deny_pattern ORDER BY 1, 2")
        before = known.fetchall()
        name = connection.info.dbname
        run(extension_dsn, "pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}")
        connection.execute(f'CREATE DATABASE "{name}_restored"'.encode())
    restored = make_conninfo(extension_dsn, dbname=f"{name}_restored")
    try:
        run(restored, "pg_restore", "--exit-on-error", str(tmp_path / "dump"))
        with psycopg.connect(restored, autocommit=True) as connection:
            known = connection.execute(
                "SELECT pattern, matches FROM coret.deny_pattern ORDER BY 1, 2"
            )
            assert known.fetchall() == before
    finally:
        with psycopg.connect(extension_dsn, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}_restored" WITH (FORCE)'.encode())
