"""The pool's side of a load: schemas, tables, COPY, and statements that may fail."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from coret_pg.errors import DatabaseError, LoadError
from coret_pg.loading.report import LoadedTable, LoadReport, Progress
from coret_pg.loading.values import SqlType

_T = TypeVar("_T")

# A name such as "date" may be a table of the schema, and so a type: pg_catalog comes first.
_LOCAL_SETTINGS = {
    "search_path": "pg_catalog",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "check_function_bodies": "off",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column to be created."""

    name: str
    type: SqlType


@dataclass(slots=True)
class Options:
    """What the caller asked for."""

    replace: bool = False
    keys: bool = True
    strict: bool = False
    progress: Progress | None = None


class Target:
    """One source's place in the pool; used inside one transaction."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        report: LoadReport,
        options: Options,
        loaded: frozenset[str] = frozenset(),
    ) -> None:
        self.connection = connection
        self.report = report
        self.options = options
        self._loaded = loaded

    @property
    def schema(self) -> str:
        """Return the name of the source's own schema."""
        return self.report.schema

    def prepare(self) -> dict[str, str]:
        """Set what a load depends on for this transaction; return the settings of before."""
        before = {}
        for name, value in _LOCAL_SETTINGS.items():
            row = self.connection.execute(
                "SELECT current_setting(%s), set_config(%s, %s, true)", (name, name, value)
            ).fetchone()
            before[name] = str(row[0]) if row else value
        return before

    def restore(self, before: dict[str, str]) -> None:
        """Set the settings of before again, for a caller whose transaction goes on."""
        for name, value in before.items():
            self.connection.execute("SELECT set_config(%s, %s, true)", (name, value))

    def create_schemas(self, schemas: Sequence[str]) -> None:
        """Create the schemas of the source, all together.

        Raises LoadError where one exists and may not be replaced, or where objects of other
        schemas depend on it; DatabaseError where the role may not create one.
        """
        existing = self.connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname = ANY (%s)", (list(schemas),)
        ).fetchall()
        for (schema,) in existing:
            if schema in self._loaded:
                raise LoadError(
                    f"{self.report.file}: the schema {schema!r} was just loaded from another file",
                    remedy="Rename one of the two files",
                )
            if not self.options.replace:
                raise LoadError(
                    f"{self.report.file}: the schema {schema!r} exists",
                    remedy="Load with --replace to put the file in its place, or name another "
                    "schema with --schema",
                )
        self._refuse_dependents([schema for (schema,) in existing])
        try:
            for (schema,) in existing:
                self.connection.execute(
                    sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema))
                )
            for schema in schemas:
                self.connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseError(
                f"{self.report.file}: no schema can be created: {first_line(error)}",
                remedy="Have an administrator run GRANT CREATE ON DATABASE ... TO your role",
            ) from error
        self.report.schemas.extend(schemas)

    def _refuse_dependents(self, schemas: Sequence[str]) -> None:
        """Raise LoadError where a view or a foreign key of another schema would be dropped too."""
        rows = self.connection.execute(
            """
            SELECT DISTINCT quote_ident(place.nspname) || '.' || quote_ident(dependent.relname)
            FROM pg_namespace own
            JOIN pg_class used ON used.relnamespace = own.oid
            JOIN pg_depend ON pg_depend.refobjid = used.oid
                AND pg_depend.refclassid = 'pg_class'::regclass
            LEFT JOIN pg_rewrite rule ON rule.oid = pg_depend.objid
                AND pg_depend.classid = 'pg_rewrite'::regclass
            LEFT JOIN pg_constraint key ON key.oid = pg_depend.objid
                AND pg_depend.classid = 'pg_constraint'::regclass
            JOIN pg_class dependent ON dependent.oid = coalesce(rule.ev_class, key.conrelid)
            JOIN pg_namespace place ON place.oid = dependent.relnamespace
            WHERE own.nspname = ANY (%(own)s) AND place.nspname <> ALL (%(own)s)
            ORDER BY 1 LIMIT 5
            """,
            {"own": list(schemas)},
        ).fetchall()
        if rows:
            raise LoadError(
                f"{self.report.file}: the schema can't be replaced, for these depend on it: "
                + ", ".join(row[0] for row in rows),
                remedy="Drop them first, or load under another name with --schema",
            )

    def create_table(self, table: str, columns: Sequence[Column]) -> None:
        """Create a table of the source's schema."""
        self.connection.execute(
            sql.SQL("CREATE TABLE {} ({})").format(
                sql.Identifier(self.schema, table),
                sql.SQL(", ").join(
                    sql.Identifier(column.name) + sql.SQL(" ") + column.type.sql()
                    for column in columns
                ),
            )
        )

    def copy_rows(
        self,
        table: str,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Any]],
        total: int | None,
    ) -> None:
        """Stream the rows into the table and report it; raises psycopg.Error as it comes."""
        rejected = self.report.rejected
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(self.schema, table),
            sql.SQL(", ").join(sql.Identifier(column.name) for column in columns),
        )
        done = 0
        if columns:
            with self.connection.cursor() as cursor:
                with cursor.copy(statement) as copy:
                    for row in self.counted(table, rows, total):
                        copy.write_row(row)
                done = cursor.rowcount
        self.report.tables.append(LoadedTable(table, done, self.report.rejected - rejected))

    def counted(self, table: str, rows: Iterable[_T], total: int | None) -> Iterator[_T]:
        """Pass the rows on and call `progress` about five times a second, and at the end."""
        progress = self.options.progress
        if progress is None:
            yield from rows
            return
        done = 0
        shown = time.monotonic()
        for done, row in enumerate(rows, 1):
            if done % 256 == 0 and time.monotonic() - shown >= 0.2:
                shown = time.monotonic()
                progress(table, done, total)
            yield row
        progress(table, done, total)

    def attempt(self, statement: sql.Composed | bytes, what: str) -> bool:
        """Run a statement that may fail: then nothing is changed and a remark says why."""
        try:
            with self.connection.transaction():
                # The binary protocol takes one statement only, whatever the text holds.
                self.connection.execute(statement, binary=isinstance(statement, bytes))
        except psycopg.Error as error:
            if self.connection.broken:
                raise
            self.report.remarks.append(f"{what}: {first_line(error)}")
            return False
        return True


def first_line(error: psycopg.Error) -> str:
    """Return the server's message, with its detail, on one line."""
    message = error.diag.message_primary or str(error)
    detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
    return " ".join((message + detail).split())
