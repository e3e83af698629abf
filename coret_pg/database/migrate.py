"""Create and upgrade our schema: alembic runs the files of sql/."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from alembic import command, context, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg import sql
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from coret_pg.database.connection import Database
from coret_pg.database.extension import installed_version, require_current
from coret_pg.database.sqlfiles import scripts
from coret_pg.errors import DatabaseError, ExtensionMissing, SchemaError
from coret_pg.resources import database_side
from coret_pg.settings import load_settings

VERSION_TABLE = "schema_version"
PGVECTOR_NEEDED = (0, 8, 0)
# Below this, HNSW indexes could be corrupted (pgvector's changelog, 0.8.1 to 0.8.4).
PGVECTOR_ADVISED = (0, 8, 4)
POSTGRES_NEEDED = 160000
# One upgrade at a time: any number that nobody else's advisory lock uses.
_UPGRADE_LOCK = 0x636F726574


@dataclass(frozen=True)
class SchemaState:
    """Revision of the schema in a database, and the newest this package knows."""

    current: str | None
    newest: str

    @property
    def is_current(self) -> bool:
        """Tell whether the schema is the one this package works with."""
        return self.current == self.newest


def initialise(database: Database) -> SchemaState:
    """Bring the schema to the newest revision; do nothing where it is there already.

    Raises ExtensionMissing with the exact statement where pgvector is absent or too old,
    SchemaError where the schema is newer than this package or belongs to an extension of another
    version, DatabaseError without privileges.
    """
    with database.session(autocommit=True) as connection:
        require_postgres(connection)
        version = installed_version(connection)
        if version is not None:
            require_current(version, database.address)
            return schema_state(connection)
        vector_schema = require_vector(connection)
        if database.is_embedded:
            # On a server of our own nobody has to be asked: calls from SQL work at once.
            connection.execute("CREATE EXTENSION IF NOT EXISTS dblink")
    with _alembic(database) as (config, connection):
        _prepare(connection, vector_schema)
        state = _state(config, connection)
        if state.current is not None and state.current not in _known_revisions(config):
            raise SchemaError(
                f"The schema in {database.address} is at revision {state.current}, which this "
                "version of coret_pg does not know",
                remedy="Upgrade coret_pg (pip install -U coret-pg)",
            )
        if state.is_current:
            _renew_routines(connection)
        else:
            command.upgrade(config, "head")
        return _state(config, connection)


def revert(database: Database, revision: str) -> SchemaState:
    """Bring the schema down to an earlier revision ("base": nothing but what people wrote)."""
    with _alembic(database) as (config, connection):
        _prepare(connection, None)
        command.downgrade(config, revision)
        return _state(config, connection)


def schema_state(connection: psycopg.Connection) -> SchemaState:
    """Return the revision in this database, read without changing anything."""
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    if newest is None:
        raise SchemaError("The package holds no migrations", remedy="Reinstall coret-pg")
    there = connection.execute("SELECT to_regclass('coret.schema_version') IS NOT NULL").fetchone()
    current = None
    if there and there[0]:
        row = connection.execute("SELECT version_num FROM coret.schema_version").fetchone()
        current = row[0] if row else None
    return SchemaState(current, newest)


def require_schema(connection: psycopg.Connection, address: str) -> None:
    """Raise SchemaError unless the schema is there and current."""
    state = schema_state(connection)
    if state.current is None:
        raise SchemaError(
            f"There is no coret schema in {address}", remedy="Run `coret init` there first"
        )
    if not state.is_current:
        raise SchemaError(
            f"The coret schema in {address} is at revision {state.current}, this version of "
            f"coret_pg works with {state.newest}",
            remedy="Run `coret init` to upgrade it, or upgrade coret_pg if it is the older one",
        )


def require_postgres(connection: psycopg.Connection) -> None:
    """Raise DatabaseError where the server is older than Postgres 16."""
    if connection.info.server_version < POSTGRES_NEEDED:
        raise DatabaseError(
            f"The server is Postgres {connection.info.parameter_status('server_version')}",
            remedy="coret_pg works with Postgres 16 and newer",
        )


def require_vector(connection: psycopg.Connection) -> str:
    """Return the schema pgvector is installed in; create the extension where we may.

    Raises ExtensionMissing with the statement an administrator has to run.
    """
    installed = vector_version(connection)
    if installed is None:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.InsufficientPrivilege:
            raise ExtensionMissing(
                f"The extension vector (pgvector) is not in database {connection.info.dbname}, and "
                f"role {connection.info.user} may not create it",
                remedy="Let a superuser run there: CREATE EXTENSION vector; then run `coret init` "
                "again",
            ) from None
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
            raise ExtensionMissing(
                "The extension vector (pgvector) is not available on this server",
                remedy="Install pgvector 0.8 or newer on the server (package postgresql-<major>-"
                "pgvector), then run there: CREATE EXTENSION vector;",
            ) from None
        installed = vector_version(connection)
    if installed is None:
        raise ExtensionMissing(
            "The extension vector could not be created", remedy="See the server's log"
        )
    version, schema = installed
    if version < PGVECTOR_NEEDED:
        raise ExtensionMissing(
            f"The extension vector is {'.'.join(map(str, version))}; coret_pg needs 0.8.0 or newer",
            remedy="Install a newer pgvector on the server, then run there: "
            "ALTER EXTENSION vector UPDATE;",
        )
    return schema


def vector_version(connection: psycopg.Connection) -> tuple[tuple[int, ...], str] | None:
    """Return pgvector's version and schema in this database, None where it is not installed."""
    row = connection.execute(
        "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace "
        "WHERE extname = 'vector'"
    ).fetchone()
    return (tuple(int(part) for part in row[0].split(".")), row[1]) if row else None


def run_migrations(connection: Connection) -> None:
    """Run the migrations alembic was asked for, with our functions out of their way."""
    _drop_routines(connection)
    context.configure(
        connection=connection, version_table=VERSION_TABLE, version_table_schema="coret"
    )
    with context.begin_transaction():
        context.run_migrations()
    if _state(context.config, connection).is_current:
        _make_routines(connection)


def run_schema_files(*names: str) -> None:
    """Run files of sql/schema/ inside a migration."""
    for name in names:
        _run_script(op.get_bind(), _sql_file(f"schema/{name}"))


def put_aside(*tables: str) -> None:
    """Move tables that people wrote into the schema coret_kept: a downgrade never loses them."""
    op.execute("CREATE SCHEMA IF NOT EXISTS coret_kept")
    op.execute(
        "COMMENT ON SCHEMA coret_kept IS 'What people wrote into coret; taken back by the next "
        "`coret init`.'"
    )
    for table in tables:
        op.execute(f"ALTER TABLE coret.{table} SET SCHEMA coret_kept")


def take_back(*tables: str) -> None:
    """Fill tables with what an earlier downgrade put aside of them."""
    for table in tables:
        found = op.get_bind().exec_driver_sql(f"SELECT to_regclass('coret_kept.{table}')")
        if found.scalar() is not None:
            # The names are constants of our migrations.
            op.execute(f"INSERT INTO coret.{table} SELECT * FROM coret_kept.{table}")  # noqa: S608
            op.execute(f"DROP TABLE coret_kept.{table}")
    # Unless another revision still has something there.
    op.execute(
        "DO $$ BEGIN DROP SCHEMA IF EXISTS coret_kept; "
        "EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END $$"
    )


@contextmanager
def own_connection() -> Iterator[Connection]:
    """Open a SQLAlchemy connection to the configured database, for alembic run by hand."""
    with Database(load_settings()) as database:
        with database.session(autocommit=True) as raw:
            vector_schema = require_vector(raw)
        with _sqlalchemy(database) as connection:
            _prepare(connection, vector_schema)
            yield connection


def _config() -> Config:
    config = Config(str(database_side() / "alembic.ini"))
    config.set_main_option(
        "script_location", str(database_side() / "migrations").replace("%", "%%")
    )
    return config


@contextmanager
def _sqlalchemy(database: Database) -> Iterator[Connection]:
    # A creator instead of a URL: the password never passes through a config file's quoting.
    engine = create_engine("postgresql+psycopg://", creator=database.connect, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def _alembic(database: Database) -> Iterator[tuple[Config, Connection]]:
    """Open one transaction for a whole up- or downgrade: all of it happens, or nothing."""
    config = _config()
    try:
        with _sqlalchemy(database) as connection:
            config.attributes["connection"] = connection
            yield config, connection
    except Exception as error:
        cause = getattr(error, "orig", error)
        if isinstance(cause, psycopg.errors.InsufficientPrivilege):
            raise DatabaseError(
                f"The role may not change the coret schema in {database.address}: "
                f"{_message(cause)}",
                remedy="Let an administrator run: GRANT CREATE ON DATABASE <database> TO <role>; "
                "or run `coret init` as the schema's owner",
            ) from None
        if isinstance(cause, psycopg.errors.DependentObjectsStillExist):
            raise SchemaError(
                f"The schema in {database.address} can't be changed: {_message(cause)}",
                remedy="Drop those objects, run the command again, then make them anew",
            ) from None
        raise


def _message(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error)


def _prepare(connection: Connection, vector_schema: str | None) -> None:
    """Take the upgrade lock, make the schema, and let SQL files find the type vector."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
    if connection.exec_driver_sql("SELECT 1 FROM pg_extension WHERE extname = 'coret'").first():
        raise SchemaError(
            "The schema coret of this database belongs to the extension coret",
            remedy="ALTER EXTENSION coret UPDATE upgrades it, DROP EXTENSION coret removes it",
        )
    # Before any revision: alembic's version table lives in the schema.
    _run_script(connection, _sql_file("schema/010_schema.sql"))
    path = sql.SQL(", ").join(
        sql.Identifier(schema) for schema in ("pg_catalog", vector_schema, "pg_temp") if schema
    )
    connection.exec_driver_sql(f"SET LOCAL search_path = {path.as_string()}")
    connection.exec_driver_sql("SET LOCAL client_min_messages = warning")


def _state(config: Config, connection: Connection) -> SchemaState:
    migration = MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE, "version_table_schema": "coret"}
    )
    newest = ScriptDirectory.from_config(config).get_current_head()
    return SchemaState(migration.get_current_revision(), newest or "")


def _known_revisions(config: Config) -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}


def _drop_routines(connection: Connection) -> None:
    """Drop our functions and views: tables can't change under them; they are made anew after."""
    _run_script(connection, _sql_file("queries/drop_routines.sql"))


def _renew_routines(connection: Connection) -> None:
    """Replace our functions, views and rights where another build is installed.

    They are dropped first only where they have another shape.
    """
    installed = connection.exec_driver_sql("SELECT fingerprint FROM coret.routine_build").scalar()
    if installed == _fingerprint(connection):
        return
    try:
        with connection.begin_nested():
            _make_routines(connection)
    except DBAPIError as error:
        changed = (
            psycopg.errors.InvalidTableDefinition,
            psycopg.errors.InvalidFunctionDefinition,
        )
        if not isinstance(error.orig, changed):
            raise
        _drop_routines(connection)
        _make_routines(connection)


def _make_routines(connection: Connection) -> None:
    for script in [*scripts("functions"), *scripts("rights")]:
        _run_script(connection, script)
    connection.exec_driver_sql(
        "INSERT INTO coret.routine_build (fingerprint) VALUES (%s)"
        " ON CONFLICT (is_the_one) DO UPDATE"
        " SET fingerprint = excluded.fingerprint, installed_at = now()",
        (_fingerprint(connection),),
    )


def _fingerprint(connection: Connection) -> str:
    """Return a hash of what makes our functions, views and rights; roles that are new count."""
    roles = connection.exec_driver_sql(
        "SELECT string_agg(rolname, ',' ORDER BY rolname) FROM pg_roles"
        " WHERE rolname LIKE 'coret\\_%%'"
    ).scalar()
    text = "\0".join([*scripts("functions"), *scripts("rights"), roles or ""])
    return hashlib.sha256(text.encode()).hexdigest()


def _sql_file(name: str) -> str:
    return (database_side() / "sql" / name).read_text(encoding="utf-8")


def _run_script(connection: Connection, text: str) -> None:
    # Without parameters the driver sends the text as it is, several statements at once.
    connection.exec_driver_sql(text, execution_options={"no_parameters": True})
