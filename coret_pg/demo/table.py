"""Declare a demo table as data, and write tables into an SQLite file."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coret_pg.errors import InputError

Value = str | int | float | None
Row = tuple[Value, ...]

TYPES = {
    "int": "INTEGER",
    "text": "TEXT",
    "date": "DATE",
    "money": "DECIMAL(10,2)",
    "real": "REAL",
    "flag": "BOOLEAN",
}
# Marks our own files, so that a rebuild never replaces somebody else's database.
APPLICATION_ID = 0x636F7274


@dataclass(frozen=True)
class Table:
    """One table: its name, its columns with their SQL types, its rows."""

    name: str
    columns: dict[str, str]
    rows: list[Row]

    def values(self, column: str) -> list[Value]:
        """Return the values of one column, in row order."""
        place = list(self.columns).index(column)
        return [row[place] for row in self.rows]


def table(name: str, columns: str, rows: Iterable[Row]) -> Table:
    """Declare a table from "name type, name type, ..."; a column name may hold blanks."""
    parts = [column.strip().rpartition(" ") for column in columns.split(",")]
    return Table(name, {column: TYPES[kind] for column, _, kind in parts}, list(rows))


def write_tables(path: Path, tables: Sequence[Table]) -> None:
    """Write the tables to a new SQLite file, replacing one that was written here before."""
    if path.exists():
        if not _is_ours(path):
            raise InputError(
                f"{path} exists and is not a file of the demo warehouse",
                remedy="Pass an empty folder, or move that file away",
            )
        path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for one in tables:
            columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in one.columns.items())
            places = ", ".join("?" for _ in one.columns)
            connection.execute(f"CREATE TABLE {_quoted(one.name)} ({columns})")
            connection.executemany(
                f"INSERT INTO {_quoted(one.name)} VALUES ({places})",  # noqa: S608
                one.rows,
            )


def _is_ours(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.Error:
        return False
    return bool(found == (APPLICATION_ID,))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
