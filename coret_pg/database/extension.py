"""Coret as an extension of Postgres: its files are built from sql/ and the migrations."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, cast

import psycopg
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from coret_pg import __version__
from coret_pg.database.sqlfiles import scripts
from coret_pg.errors import InputError, SchemaError
from coret_pg.resources import database_side

NAME = "coret"


def extension_files() -> dict[str, str]:
    """Return the control file and the scripts of the newest version, by file name.

    One script installs it, one for each older version updates from there.
    """
    revisions = version_revisions()
    *olders, version = revisions
    newest = revisions[version]
    routines = [*scripts("functions"), *scripts("rights")]
    files = {
        f"{NAME}.control": f"{_text('coret.control')}default_version = '{version}'\n",
        f"{NAME}--{version}.sql": _script(
            f"CREATE EXTENSION {NAME}",
            newest,
            [_text("create.sql"), _schema_comment(), *_schema_changes("base", newest), *routines],
        ),
    }
    for older in olders:
        files[f"{NAME}--{older}--{version}.sql"] = _script(
            f"ALTER EXTENSION {NAME} UPDATE",
            newest,
            [
                _text("drop_routines.sql", "queries"),
                *_schema_changes(revisions[older], newest),
                *routines,
            ],
        )
    return files


def write_extension(folder: Path) -> list[Path]:
    """Write the extension's files into a folder, such as $(pg_config --sharedir)/extension.

    Raises InputError where that folder isn't there or can't be written to.
    """
    written = []
    for name, text in extension_files().items():
        file = folder / name
        try:
            file.write_text(text, encoding="utf-8")
            # The server's user has to read it, whatever the umask here.
            file.chmod(0o644)
        except OSError as error:
            raise InputError(
                f"{file} can't be written: {error.strerror}",
                remedy="Name a folder that is there and that you may write to; the server's own is "
                "$(pg_config --sharedir)/extension",
            ) from error
        written.append(file)
    return written


def version_revisions() -> dict[str, str]:
    """Return the schema's revision of each version of this package, oldest first."""
    return {str(k): str(v) for k, v in tomllib.loads(_text("versions.toml")).items()}


def installed_version(connection: psycopg.Connection) -> str | None:
    """Return the version of the extension in this database, None where it is not installed."""
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = %s", [NAME]
    ).fetchone()
    return row[0] if row else None


def require_current(version: str, address: str) -> None:
    """Raise SchemaError unless an installed extension is of this package's version."""
    if version == __version__:
        return
    found = f"The extension {NAME} in {address} is {version}, this is coret_pg {__version__}"
    if version in version_revisions():
        raise SchemaError(
            found,
            remedy="Put the new files on the server (`coret extension`, docs/how-to/install.md), "
            f"then let its owner run there: ALTER EXTENSION {NAME} UPDATE;",
        )
    raise SchemaError(found, remedy="Upgrade coret_pg (pip install -U coret-pg)")


def _text(name: str, folder: str = "extension") -> str:
    return (database_side() / "sql" / folder / name).read_text(encoding="utf-8")


def _script(statement: str, revision: str, parts: list[str]) -> str:
    guard = f'\\echo Run "{statement}" instead of this file. \\quit\n'
    ending = [_text("revision.sql").replace("@revision@", revision), _text("data.sql")]
    return guard + "\n".join([_text("begin.sql"), *parts, *ending])


def _schema_comment() -> str:
    """Return what 010_schema.sql says of the schema, which CREATE EXTENSION makes by itself."""
    text = _text("010_schema.sql", "schema")
    found = re.search(r"COMMENT ON SCHEMA coret IS\s+'(?:[^']|'')*';", text)
    if found is None:
        raise SchemaError(
            "sql/schema/010_schema.sql holds no comment on the schema",
            remedy="Reinstall coret-pg",
        )
    return found[0]


def _schema_changes(since: str, until: str) -> list[str]:
    """Return the SQL of the migrations after one revision, up to and including another."""
    recorder = _Recorder()
    context = MigrationContext.configure(connection=cast(Connection, recorder))
    directory = ScriptDirectory(str(database_side() / "migrations"))
    with Operations.context(context):
        for revision in reversed(list(directory.iterate_revisions(until, since))):
            revision.module.upgrade()
    return recorder.parts


class _Recorder:
    """Stands where a migration expects a connection, and writes down what it would run."""

    def __init__(self) -> None:
        self.dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
        self.parts: list[str] = []

    def in_transaction(self) -> bool:
        return True

    def exec_driver_sql(self, text: str, **_: Any) -> _Nothing:
        # Migrations ask for what an earlier downgrade put aside; whoever makes the extension anew
        # has nothing there.
        if not text.startswith("SELECT "):
            self.parts.append(text)
        return _Nothing()

    def execute(self, statement: Any, *_: Any) -> None:
        self.parts.append(f"{statement.text};")


class _Nothing:
    """The result of a query that finds nothing."""

    def scalar(self) -> None:
        return None
