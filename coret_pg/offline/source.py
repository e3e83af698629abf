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
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from coret_pg.database.connection import Database, limit_reads
from coret_pg.database.sqlfiles import query
from coret_pg.offline.key_forms import FORMS, NARROWER, unkeyed_form

# Tables above this are narrowed by TABLESAMPLE before rows are picked.
_SAMPLE_WHOLE_UP_TO = 10_000
# Above this BERNOULLI, which reads every page, gives way to whole pages.
_SAMPLE_ROWS_UP_TO = 1_000_000
_INT8_ARRAY = 1016
# Values of text columns with at most so many are kept whole, for questions that name one. These
# are contents: a policy on what may be sampled has to hold for them as it does for snapshots.
_MOST_KEPT_VALUES = 1_000
_LONGEST_KEPT_VALUE = 60


@dataclass(frozen=True)
class PoolTable:
    """A table of the catalog, as steps need it to read from its source."""

    table_id: int
    schema_name: str
    table_name: str
    kind: str
    estimated_rows: int | None

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

    def close(self) -> None:
        """Let go of the source."""


class PostgresSource:
    """A Postgres database, read over a connection of its own that can only read."""

    def __init__(self, database: Database, source_id: int) -> None:
        self.source_id = source_id
        self._connection = database.connect(autocommit=True, application_name="coret_pg reader")
        limit_reads(self._connection, database.settings)
        self._connection.adapters.register_loader(_INT8_ARRAY, _KeysLoader)

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
        """Return facts and keys of one column, from one or two scans."""
        with self._reading(table):
            kind = self._key_kind(table, column)
            form = FORMS[kind] if kind else unkeyed_form(column.type_name)
            statement = query("profile_column").format(
                value=_fill(form.value, column),
                key=sql.SQL(form.key),
                table=_name(table),
                most_values=sql.Literal(_MOST_KEPT_VALUES if column.type_family == "text" else 0),
                longest_value=sql.Literal(_LONGEST_KEPT_VALUE),
            )
            # Binary, so that the keys arrive in the form they are handed on in.
            with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
                facts = cursor.execute(statement).fetchone() or {}
        if kind is None:
            facts.update(keys=None, min_key=None, max_key=None)
        return {**facts, "key_kind": kind}

    def _key_kind(self, table: PoolTable, column: PoolColumn) -> str | None:
        family = column.type_family
        if family not in NARROWER:
            return family
        narrower, condition = NARROWER[family]
        statement = query("all_rows_satisfy").format(
            condition=_fill(condition, column), table=_name(table)
        )
        row = self._connection.execute(statement).fetchone()
        return narrower if row and row[0] else family

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
