"""Where tables are read from.

Steps take a Source, not a connection: reading is pushed down to wherever the rows are, and only
facts come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
from psycopg import pq, sql
from psycopg.adapt import Loader
from psycopg.types.json import Jsonb

from coret_pg.database.connection import Database, limit_reads
from coret_pg.database.sqlfiles import query
from coret_pg.offline.column_facts import ColumnReader
from coret_pg.offline.key_forms import FORMS, unkeyed_form

# Tables above this are narrowed by TABLESAMPLE before rows are picked.
_SAMPLE_WHOLE_UP_TO = 10_000
# Above this BERNOULLI, which reads every page, gives way to whole pages.
_SAMPLE_ROWS_UP_TO = 1_000_000
_INT8_ARRAY = 1016
_TOO_MUCH = (
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.ConfigurationLimitExceeded,
    psycopg.errors.OutOfMemory,
    psycopg.errors.DiskFull,
)


@dataclass(frozen=True)
class PoolTable:
    """A table of the catalog, as steps need it to read from its source."""

    table_id: int
    schema_name: str
    table_name: str
    kind: str
    estimated_rows: int | None
    is_read_whole: bool = False

    @property
    def qualified_name(self) -> str:
        """Return schema.table, for people."""
        return f"{self.schema_name}.{self.table_name}"


@dataclass(frozen=True)
class PoolColumn:
    """A column of the catalog."""

    column_id: int
    column_name: str
    type_name: str
    type_family: str | None


@dataclass(frozen=True)
class SortedKeys:
    """A sorted bigint[] in Postgres's binary form: handed on between connections unread."""

    data: bytes


@dataclass(frozen=True)
class TupleCounts:
    """How the distinct tuples of some columns of a child table lie in a parent's.

    `child`: those of the child; `shared`: those of them that the parent has.
    """

    child: int
    shared: int
    child_is_unique: bool
    parent_is_unique: bool


class Unreadable(Exception):
    """Say why a table can't be read now; it is skipped with that reason and the run goes on."""


class Source(Protocol):
    """A database whose tables are in the pool."""

    source_id: int

    def catalog(self) -> list[tuple[Any, ...]]:
        """Return a row a table, in the columns of sql/queries/incoming_catalog.sql."""

    def sample_rows(
        self, table: PoolTable, columns: Sequence[PoolColumn], rows: int, seed: int
    ) -> list[list[str | None]]:
        """Return up to `rows` sampled rows as texts; raise Unreadable."""

    def profile_column(self, table: PoolTable, column: PoolColumn) -> dict[str, Any]:
        """Return what sql/queries/store_profile.sql takes of a column; raise Unreadable.

        And `kept_values`: its distinct values, None where they are too many to keep.
        """

    def tidied_values(self, table: PoolTable, column: PoolColumn) -> set[str]:
        """Return the distinct values of a text column, lower case and without blanks around.

        Raises Unreadable.
        """

    def count_tuples(
        self,
        child: PoolTable,
        child_columns: Sequence[PoolColumn],
        parent: PoolTable,
        parent_columns: Sequence[PoolColumn],
    ) -> TupleCounts:
        """Return how tuples of the child's columns lie in the parent's; raise Unreadable.

        The columns' families are those of their keys, the same on both sides.
        """

    def cancel(self) -> None:
        """Stop what is being read, from another thread."""

    def close(self) -> None:
        """Let go of the source."""


class PostgresSource:
    """A Postgres database, read over a connection of its own that can only read."""

    def __init__(self, database: Database, source_id: int) -> None:
        self.source_id = source_id
        self._sketch_rows = database.settings.sketch_rows
        self._connection = database.connect(autocommit=True, application_name="coret_pg reader")
        limit_reads(self._connection, database.settings)
        # No statement comes twice: each names its table.
        self._connection.prepare_threshold = None
        # What is read first of a table doesn't depend on who else reads it.
        self._connection.execute("SET synchronize_seqscans = off")
        self._connection.adapters.register_loader(_INT8_ARRAY, _KeysLoader)
        self._distinct_columns: dict[str, set[tuple[str, str]]] = {}

    @property
    def backend(self) -> int:
        """Return the process that reads, on the server."""
        return self._connection.info.backend_pid

    def cancel(self) -> None:
        """Let the server stop the statement that reads now, if any."""
        self._connection.cancel_safe()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def catalog(self) -> list[tuple[Any, ...]]:
        """Return a row a table, in the columns of sql/queries/incoming_catalog.sql."""
        rows = self._connection.execute(query("catalog_tables")).fetchall()
        return [(*row[:8], Jsonb(row[8]), Jsonb(row[9])) for row in rows]

    def sample_rows(
        self, table: PoolTable, columns: Sequence[PoolColumn], rows: int, seed: int
    ) -> list[list[str | None]]:
        """Return up to `rows` rows, texts cut at 200 characters; the same for the same seed."""
        texts = sql.SQL(", ").join(
            sql.SQL("left({}, 200)").format(_fill(unkeyed_form(column.type_name).value, column))
            for column in columns
        )
        # Literals, not parameters: with parameters a % in a column's name would be read as one.
        statement = query("sample_rows").format(
            texts=texts,
            table=_name(table),
            sample=_sample_clause(table, seed),
            seed=sql.Literal(seed),
            rows=sql.Literal(rows),
        )
        with self._reading(table):
            found = self._connection.execute(statement).fetchall()
        return [list(row) for row in found]

    def profile_column(self, table: PoolTable, column: PoolColumn) -> dict[str, Any]:
        """Return facts and keys of one column; of big tables from a sketch."""
        with self._reading(table):
            return self._reader(table, column).read(
                sketch_above=None if table.is_read_whole else self._sketch_rows,
                estimated_rows=table.estimated_rows or 0,
                mostly_distinct=self._is_mostly_distinct(table, column),
            )

    def tidied_values(self, table: PoolTable, column: PoolColumn) -> set[str]:
        """Return the distinct values of a text column, lower case and without blanks around."""
        with self._reading(table):
            return self._reader(table, column).tidied_values()

    def count_tuples(
        self,
        child: PoolTable,
        child_columns: Sequence[PoolColumn],
        parent: PoolTable,
        parent_columns: Sequence[PoolColumn],
    ) -> TupleCounts:
        """Return how tuples of the child's columns lie in the parent's, from one scan of each."""
        statement = query("count_tuples").format(
            child=_name(child),
            parent=_name(parent),
            child_values=_key_values(child_columns),
            parent_values=_key_values(parent_columns),
            keys=sql.SQL(", ").join(_key_names(len(child_columns))),
        )
        with self._reading(child), self._reading(parent):
            row = self._connection.execute(statement).fetchone()
        return TupleCounts(*row) if row else TupleCounts(0, 0, False, False)

    def _is_mostly_distinct(self, table: PoolTable, column: PoolColumn) -> bool:
        # All of a schema at once: of one table they cost half as much.
        if table.schema_name not in self._distinct_columns:
            self._distinct_columns[table.schema_name] = set(
                self._connection.execute(query("mostly_distinct"), [table.schema_name])
            )
        return (table.table_name, column.column_name) in self._distinct_columns[table.schema_name]

    def _reader(self, table: PoolTable, column: PoolColumn) -> ColumnReader:
        return ColumnReader(
            self._connection,
            _name(table),
            sql.Identifier(column.column_name),
            column.type_name,
            column.type_family,
        )

    @contextmanager
    def _reading(self, table: PoolTable) -> Iterator[None]:
        if table.kind == "foreign table":
            raise Unreadable("a foreign table is not scanned: its rows are on another server")
        try:
            yield
        except psycopg.errors.InsufficientPrivilege as error:
            raise Unreadable(f"no privilege: {_first_line(error)}") from None
        except psycopg.errors.QueryCanceled:
            raise Unreadable("reading it took longer than the statement timeout") from None
        except psycopg.errors.LockNotAvailable:
            raise Unreadable("it stayed locked longer than the lock timeout") from None
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise Unreadable(
                f"it changed since the catalog was read: {_first_line(error)}"
            ) from None
        except _TOO_MUCH as error:
            raise Unreadable(f"it is too much for the server: {_first_line(error)}") from None
        except (psycopg.DataError, psycopg.errors.ObjectNotInPrerequisiteState) as error:
            # A view that fails when read, a materialized view never filled.
            raise Unreadable(_first_line(error)) from None


class _KeysLoader(Loader):
    format = pq.Format.BINARY

    def load(self, data: bytes | bytearray | memoryview) -> SortedKeys:
        return SortedKeys(bytes(data))


def _name(table: PoolTable) -> sql.Identifier:
    return sql.Identifier(table.schema_name, table.table_name)


def _fill(fragment: str, column: PoolColumn) -> sql.Composed:
    # The fragments are constants of key_forms; only the identifier comes from outside, quoted.
    return sql.SQL(fragment).format(column=sql.Identifier(column.column_name))


def _key_names(count: int) -> list[sql.Identifier]:
    return [sql.Identifier(f"k{number}") for number in range(1, count + 1)]


def _key_values(columns: Sequence[PoolColumn]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(_fill(FORMS[column.type_family or ""].value, column), name)
        for column, name in zip(columns, _key_names(len(columns)), strict=True)
    )


def _sample_clause(table: PoolTable, seed: int) -> sql.Composable:
    rows = table.estimated_rows or 0
    if rows <= _SAMPLE_WHOLE_UP_TO or table.kind == "view":
        return sql.SQL("")
    return sql.SQL("TABLESAMPLE {} ({}) REPEATABLE ({})").format(
        sql.SQL("BERNOULLI" if rows <= _SAMPLE_ROWS_UP_TO else "SYSTEM"),
        sql.Literal(100 * 2000 / rows),
        sql.Literal(seed),
    )


def _first_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).splitlines()[0]
