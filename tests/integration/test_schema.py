"""The schema: from sql/ and from migrations alike, idempotent, and kind to what people wrote."""

from __future__ import annotations

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from psycopg import sql

from coret_pg.database.connection import Database
from coret_pg.database.migrate import initialise, require_schema, revert, schema_state
from coret_pg.database.sqlfiles import query, scripts
from coret_pg.errors import DatabaseError, ExtensionMissing, SchemaError
from coret_pg.resources import database_side
from coret_pg.settings import load_settings

# Everything that makes up a schema, as text: what alembic's own table adds is left out.
_SHAPE = """
SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
       concat(a.attidentity, a.attgenerated, a.attstorage), pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'coret'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname <> 'schema_version'
UNION ALL
SELECT 'relation', relname, relkind::text, obj_description(oid, 'pg_class'), CASE relkind WHEN 'v' THEN pg_get_viewdef(oid) END, NULL, NULL, NULL
FROM pg_class WHERE relnamespace = 'coret'::regnamespace AND relkind IN ('r', 'v') AND relname <> 'schema_version'
UNION ALL
SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid), NULL, NULL, NULL, NULL, NULL
FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE c.relnamespace = 'coret'::regnamespace AND c.relname <> 'schema_version'
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL, NULL
FROM pg_constraint WHERE connamespace = 'coret'::regnamespace AND conrelid <> coalesce(to_regclass('coret.schema_version'), 0)
UNION ALL
SELECT 'function', oid::regprocedure::text, pg_get_functiondef(oid), obj_description(oid, 'pg_proc'), NULL, NULL, NULL, NULL
FROM pg_proc WHERE pronamespace = 'coret'::regnamespace
"""


def shape(connection: psycopg.Connection) -> set[tuple[object, ...]]:
    return set(connection.execute(_SHAPE).fetchall())


def database(dsn: str, **more: object) -> Database:
    return Database(load_settings(dsn=dsn, **more))


def test_sql_files_and_migrations_build_the_same(dsn: str) -> None:
    with database(dsn) as pool, pool.session() as connection:
        initialise(pool)
        migrated = shape(connection)
        connection.execute("DROP SCHEMA coret CASCADE")
        connection.execute("SET search_path = pg_catalog, public, pg_temp")
        for script in scripts("schema") + scripts("functions"):
            connection.execute(script.encode())
        built = shape(connection)
    assert len(built) > 150
    assert built == migrated


def test_initialise_twice_changes_nothing(dsn: str) -> None:
    with database(dsn) as pool, pool.session() as connection:
        first = initialise(pool)
        before = shape(connection)
        connection.commit()
        assert initialise(pool) == first
        assert first.is_current
        assert shape(connection) == before


def test_routines_of_another_shape_are_made_anew(dsn: str) -> None:
    """An earlier build of the same revision had other columns in a view, other names of arguments."""
    with database(dsn) as pool, pool.session(autocommit=True) as connection:
        initialise(pool)
        connection.execute(
            "DROP VIEW coret.compatible_pair; CREATE VIEW coret.compatible_pair AS SELECT 1 AS old"
        )
        connection.execute(
            "DROP FUNCTION coret.qualified_name CASCADE;"
            "CREATE FUNCTION coret.qualified_name(a text, b text) RETURNS text LANGUAGE sql RETURN a || b;"
            "UPDATE coret.routine_build SET fingerprint = 'of an earlier build'"
        )
        initialise(pool)
        assert connection.execute("SELECT coret.qualified_name('s', 't')").fetchone() == ("s.t",)
        connection.execute("SELECT name_a FROM coret.compatible_pair")


def test_down_and_up_again_keeps_what_people_wrote(dsn: str) -> None:
    with database(dsn) as pool, pool.session(autocommit=True) as connection:
        initialise(pool)
        connection.execute("CREATE TABLE public.theirs AS SELECT 7 AS kept")
        connection.execute(
            "INSERT INTO coret.purpose_note (schema_name, table_name, purpose) VALUES ('a', 'b', 'c')"
        )
        connection.execute(
            "INSERT INTO coret.join_verdict (left_schema, left_table, left_columns, right_schema, right_table, right_columns, verdict)"
            " VALUES ('a', 'b', '{c}', 'd', 'e', '{f}', 'accepted')"
        )
        assert revert(pool, "base").current is None
        assert schema_state(connection).current is None
        left = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'coret'::regnamespace AND relkind = 'r'"
        ).fetchall()
        assert left == [("schema_version",)]
        assert initialise(pool).is_current
        note = connection.execute("SELECT purpose FROM coret.purpose_note").fetchall()
        assert note == [("c",)]
        verdict = connection.execute(
            "SELECT left_table, verdict FROM coret.join_verdict"
        ).fetchall()
        assert verdict == [("b", "accepted")]
        assert connection.execute("SELECT kept FROM public.theirs").fetchall() == [(7,)]
        gone = connection.execute("SELECT to_regnamespace('coret_kept')").fetchone()
        assert gone == (None,)


def test_everything_carries_a_comment(dsn: str) -> None:
    with database(dsn) as pool, pool.session() as connection:
        initialise(pool)
        silent = connection.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'coret'::regnamespace"
            " AND relkind IN ('r', 'v') AND obj_description(oid, 'pg_class') IS NULL UNION ALL "
            "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'coret'::regnamespace"
            " AND obj_description(oid, 'pg_proc') IS NULL"
        ).fetchall()
    assert silent == []


def role_dsn(connection: psycopg.Connection, name: str) -> str:
    info = connection.info
    connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))
    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
    return f"host={info.host} port={info.port} dbname={info.dbname} user={name}"


def drop_role(dsn: str, name: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_a_plain_role_initialises_where_the_extension_exists(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as superuser:
        plain = role_dsn(superuser, "plain_initialiser")
        superuser.execute("CREATE SCHEMA extensions")
        # Managed services keep extensions in a schema of their own.
        superuser.execute("CREATE EXTENSION vector SCHEMA extensions")
        superuser.execute("GRANT USAGE ON SCHEMA extensions TO plain_initialiser")
        with (
            database(plain) as pool,
            pytest.raises(DatabaseError, match="GRANT CREATE ON DATABASE"),
        ):
            initialise(pool)
        superuser.execute(
            sql.SQL("GRANT CREATE ON DATABASE {} TO plain_initialiser").format(
                sql.Identifier(superuser.info.dbname)
            )
        )
        with database(plain) as pool, pool.session() as connection:
            assert initialise(pool).is_current
            assert initialise(pool).is_current
            require_schema(connection, pool.address)
    drop_role(dsn, "plain_initialiser")


def test_a_missing_extension_names_the_statement_to_run(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as superuser:
        plain = role_dsn(superuser, "plain_without_vector")
        with database(plain) as pool, pytest.raises(ExtensionMissing) as caught:
            initialise(pool)
    assert "CREATE EXTENSION vector;" in str(caught.value)
    drop_role(dsn, "plain_without_vector")


def test_an_old_extension_is_refused(dsn: str) -> None:
    with database(dsn) as pool, pool.session(autocommit=True) as connection:
        initialise(pool)
        # The catalog says so; the files of an old release are nowhere to be had.
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
        with pytest.raises(ExtensionMissing, match=r"0\.7\.4.*ALTER EXTENSION vector UPDATE"):
            initialise(pool)


def test_no_schema_an_older_and_a_newer_one_are_told_apart(dsn: str) -> None:
    with database(dsn) as pool, pool.session(autocommit=True) as connection:
        with pytest.raises(SchemaError, match="coret init"):
            require_schema(connection, pool.address)
        initialise(pool)
        connection.execute("UPDATE coret.schema_version SET version_num = '9999'")
        with pytest.raises(SchemaError, match="9999"):
            require_schema(connection, pool.address)
        with pytest.raises(SchemaError, match="pip install -U"):
            initialise(pool)


def test_objects_others_built_on_ours_are_never_dropped(dsn: str) -> None:
    with database(dsn) as pool, pool.session(autocommit=True) as connection:
        initialise(pool)
        connection.execute("CREATE VIEW public.theirs AS SELECT * FROM coret.status")
        with pytest.raises(SchemaError, match="depend"):
            revert(pool, "base")
        assert connection.execute("SELECT count(*) FROM public.theirs").fetchone() == (7,)
        assert schema_state(connection).is_current


def test_every_query_file_says_what_it_does() -> None:
    files = sorted((database_side() / "sql").rglob("*.sql"))
    assert len(files) > 40
    assert [file.name for file in files if not file.read_text().startswith("-- ")] == []
    assert query("pool_tables").as_string().startswith("-- ")


def test_alembic_by_hand_does_the_same(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(str(database_side() / "alembic.ini"))
    monkeypatch.setenv("CORET_DSN", dsn)
    with database(dsn) as pool, pool.session(autocommit=True) as connection:
        command.upgrade(config, "head")
        by_hand = shape(connection)
        command.downgrade(config, "base")
        assert schema_state(connection).current is None
        command.upgrade(config, "head")
        assert shape(connection) == by_hand
        initialise(pool)
        assert shape(connection) == by_hand
