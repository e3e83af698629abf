"""Load a SQLite file: its tables, then the keys that its data satisfies."""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from psycopg import sql

from coret_pg.loading.names import SYSTEM_COLUMNS, NameBook
from coret_pg.loading.report import RowRefused
from coret_pg.loading.sources import Source
from coret_pg.loading.sqlite_catalog import (
    SqliteForeignKey,
    SqliteTable,
    open_sqlite,
    quoted,
    read_tables,
    read_values,
    scan,
)
from coret_pg.loading.sqlite_types import Converter, Stored, as_text, choose_type
from coret_pg.loading.target import Column, Target


class _Loaded:
    """A table of the file and its names in the pool."""

    def __init__(self, table: SqliteTable, name: str, columns: Sequence[Column]) -> None:
        self.table = table
        self.name = name
        self._columns = {
            old.name.lower(): new.name for old, new in zip(table.columns, columns, strict=True)
        }

    def column(self, name: str) -> str | None:
        """Return a column's name in the pool; SQLite's names are the same in any case."""
        return self._columns.get(name.lower())


def load_sqlite(source: Source, target: Target) -> None:
    """Load every table of a SQLite file.

    Raises LoadError for a file that is no SQLite database or is damaged.
    """
    remarks = target.report.remarks
    with open_sqlite(source.path) as database:
        target.create_schemas([target.schema])
        tables = read_tables(database, remarks)
        if not tables:
            remarks.append("the file holds no table")
        names = NameBook("table", remarks)
        loaded = []
        for number, table in enumerate(tables, 1):
            name = names.add(table.name, empty=f"table_{number}")
            loaded.append(_load_table(source.path, database, table, name, target))
    if target.options.keys:
        _add_keys(loaded, target)


def _load_table(
    path: Path, database: sqlite3.Connection, table: SqliteTable, name: str, target: Target
) -> _Loaded:
    remarks = target.report.remarks
    stored = scan(database, table)
    names = NameBook(f"{table.name}: column", remarks, taken=SYSTEM_COLUMNS)
    columns: list[Column] = []
    for number, (column, found) in enumerate(zip(table.columns, stored, strict=True), 1):
        values = partial(read_values, database, table.name, column.name)
        kind, remark = choose_type(column.declared, found, values)
        if remark:
            remarks.append(f"{table.name}.{column.name}: {remark}")
        if column.generated:
            remarks.append(f"{table.name}.{column.name}: generated: its values are loaded")
        columns.append(Column(names.add(column.name, empty=f"column_{number}"), kind))
    target.create_table(name, columns)
    converters = [Converter(column.name, column.type) for column in columns]
    rows = _rows(path, database, table, converters, target)
    target.copy_rows(name, columns, rows, stored[0].rows if stored else 0)
    for column, converter in zip(table.columns, converters, strict=True):
        if converter.foreign:
            remarks.append(
                f"{table.name}.{column.name}: {converter.foreign} values are not UTF-8: "
                "read as Windows-1252"
            )
    if target.options.keys:
        _require_values(name, table, columns, stored, target)
    return _Loaded(table, name, columns)


def _rows(
    path: Path,
    database: sqlite3.Connection,
    table: SqliteTable,
    converters: Sequence[Converter],
    target: Target,
) -> Iterator[list[Any]]:
    wanted = ", ".join(quoted(column.name) for column in table.columns)
    query = f"SELECT {wanted} FROM {quoted(table.name)}"  # noqa: S608
    convert = [converter.convert for converter in converters]
    for number, row in enumerate(database.execute(query), 1):
        try:
            yield [
                None if value is None else function(value)
                for function, value in zip(convert, row, strict=True)
            ]
        except RowRefused as refused:
            text = ", ".join("NULL" if value is None else as_text(value) for value in row)
            target.report.reject(path, number, f"{table.name}: {refused}", text)


def _require_values(
    name: str,
    table: SqliteTable,
    columns: Sequence[Column],
    stored: Sequence[Stored],
    target: Target,
) -> None:
    kept = [
        sql.SQL("ALTER COLUMN {} SET NOT NULL").format(sql.Identifier(column.name))
        for old, column, found in zip(table.columns, columns, stored, strict=True)
        if old.not_null and found.values == found.rows
    ]
    if kept:
        target.connection.execute(
            sql.SQL("ALTER TABLE {} {}").format(
                sql.Identifier(target.schema, name), sql.SQL(", ").join(kept)
            )
        )


def _columns(names: Sequence[str]) -> sql.Composed:
    return sql.SQL("({})").format(sql.SQL(", ").join(sql.Identifier(name) for name in names))


def _add_keys(loaded: Sequence[_Loaded], target: Target) -> None:
    """Create the declared keys; parents come first, for a foreign key needs a unique one."""
    by_name = {item.table.name.lower(): item for item in loaded}
    for item in loaded:
        for kind, columns in (
            *((sql.SQL("PRIMARY KEY"), key) for key in [item.table.primary_key] if key),
            *((sql.SQL("UNIQUE"), key) for key in item.table.uniques),
        ):
            _add(item, kind, [item.column(name) for name in columns], target)
    for item in loaded:
        for key in item.table.foreign_keys:
            _add_foreign_key(item, key, by_name.get(key.parent.lower()), target)


def _add(item: _Loaded, kind: sql.SQL, columns: Sequence[str | None], target: Target) -> None:
    names = [name for name in columns if name is not None]
    target.attempt(
        sql.SQL("ALTER TABLE {} ADD {} {}").format(
            sql.Identifier(target.schema, item.name), kind, _columns(names)
        ),
        f"{item.table.name}: {kind.as_string().lower()} ({', '.join(names)}) left out",
    )


def _add_foreign_key(
    item: _Loaded, key: SqliteForeignKey, parent: _Loaded | None, target: Target
) -> None:
    text = f"{item.table.name}: foreign key ({', '.join(key.columns)}) to {key.parent}"
    if parent is None:
        target.report.remarks.append(f"{text} left out: there is no such table")
        return
    columns = [item.column(name) for name in key.columns]
    wanted = key.parent_columns or parent.table.primary_key
    parents = [parent.column(name) for name in wanted]
    here = [name for name in columns if name is not None]
    there = [name for name in parents if name is not None]
    if len(here) != len(key.columns) or len(there) != len(here):
        target.report.remarks.append(f"{text} left out: its columns are not there")
        return
    target.attempt(
        sql.SQL("ALTER TABLE {} ADD FOREIGN KEY {} REFERENCES {} {}").format(
            sql.Identifier(target.schema, item.name),
            _columns(here),
            sql.Identifier(target.schema, parent.name),
            _columns(there),
        ),
        f"{text} left out",
    )
