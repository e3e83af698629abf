"""Open a SQLite file without touching it, and read its tables, columns and keys."""

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coret_pg.errors import LoadError
from coret_pg.loading.sources import opened, unreadable
from coret_pg.loading.sqlite_types import Stored

MAGIC = b"SQLite format 3\0"
_WAL = 2  # of the header's bytes 18 and 19
_BATCH = 100  # columns of one scan: SQLite allows 2,000 results, and eight are asked of each
# The tables that full-text and r-tree indexes keep their data in.
_SHADOWS = (
    *("content", "segments", "segdir", "docsize", "stat", "data", "idx", "config"),
    *("node", "parent", "rowid"),
)


@dataclass(frozen=True, slots=True)
class SqliteColumn:
    """A column as declared; `key` is its place in the primary key, from 1, else 0."""

    name: str
    declared: str
    not_null: bool
    key: int
    generated: bool


@dataclass(frozen=True, slots=True)
class SqliteForeignKey:
    """A foreign key; no parent columns: it refers to the parent's primary key."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(slots=True)
class SqliteTable:
    """A table and its declared keys."""

    name: str
    columns: list[SqliteColumn]
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    foreign_keys: list[SqliteForeignKey] = field(default_factory=list)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Return the columns of the primary key, in its order."""
        return tuple(c.name for c in sorted(self.columns, key=lambda c: c.key) if c.key)


@contextmanager
def open_sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file for one consistent read; nothing is written to it or beside it.

    Text comes as bytes. Raises LoadError where the file is no SQLite database, is
    encrypted or damaged, also while it is read.
    """
    with opened(path) as file:
        head = file.read(100)
    if not head.startswith(MAGIC):
        raise LoadError(
            f"{path} is no SQLite database, or an encrypted one" if head else f"{path} is empty",
            remedy="Check the file; an encrypted database has to be decrypted first",
        )
    try:
        with (
            _location(path, in_wal_mode=head[18:20] == bytes([_WAL, _WAL])) as uri,
            closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection,
        ):
            connection.text_factory = bytes
            connection.execute("BEGIN")
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise LoadError(
            f"{path}: a table's or column's name is not UTF-8", remedy="Rename it in the file"
        ) from error


@contextmanager
def _location(path: Path, *, in_wal_mode: bool) -> Iterator[str]:
    uri = path.resolve().as_uri()
    log = path.with_name(path.name + "-wal")
    if not in_wal_mode:
        yield f"{uri}?mode=ro"
    elif not log.exists() or log.stat().st_size == 0:
        # Even a read-only reader would create -wal and -shm files beside the database.
        yield f"{uri}?mode=ro&immutable=1"
    else:
        with tempfile.TemporaryDirectory(prefix="coret-load-") as folder:
            copy = Path(folder) / "copy.sqlite"
            shutil.copyfile(path, copy)
            shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
            yield f"{copy.as_uri()}?mode=ro"


def quoted(name: str) -> str:
    """Return the name as an identifier of SQLite."""
    return '"' + name.replace('"', '""') + '"'


def read_tables(connection: sqlite3.Connection, remarks: list[str]) -> list[SqliteTable]:
    """Return the tables in the order they were created; remark on everything left out."""
    entries = [
        (bytes(kind).decode(), bytes(name).decode(), bytes(text or b"").decode(errors="replace"))
        for kind, name, text in connection.execute(
            "SELECT type, name, sql FROM sqlite_master"
            " WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            " ORDER BY rowid"
        )
    ]
    virtual = {name for _, name, text in entries if re.match(r"\s*CREATE\s+VIRTUAL\b", text, re.I)}
    shadows = {f"{name}_{suffix}" for name in virtual for suffix in _SHADOWS}
    tables = []
    for kind, name, _ in entries:
        if kind == "view":
            remarks.append(f"view {name} left out")
        elif name in virtual:
            remarks.append(f"virtual table {name} left out")
        elif name in shadows:
            remarks.append(f"shadow table {name} left out")
        else:
            tables.append(_table(connection, name))
    return tables


def _pragma(connection: sqlite3.Connection, pragma: str, name: str) -> list[tuple[Any, ...]]:
    rows = connection.execute(f"PRAGMA {pragma}({quoted(name)})").fetchall()
    return [tuple(v.decode() if isinstance(v, bytes) else v for v in row) for row in rows]


def _table(connection: sqlite3.Connection, name: str) -> SqliteTable:
    columns = [
        SqliteColumn(column, declared or "", bool(not_null), key, generated=hidden in (2, 3))
        for _, column, declared, not_null, _, key, hidden in _pragma(
            connection, "table_xinfo", name
        )
        if hidden != 1
    ]
    table = SqliteTable(name, columns)
    for _, index, unique, origin, partial in _pragma(connection, "index_list", name):
        if unique and origin != "pk" and not partial:
            parts = [row[1:3] for row in _pragma(connection, "index_info", index)]
            # A part without a name is an expression.
            if parts and all(column is not None for _, column in parts):
                table.uniques.append(tuple(column for _, column in parts))
    table.uniques = sorted(set(table.uniques) - {table.primary_key})
    parents: dict[int, list[tuple[Any, ...]]] = {}
    for row in _pragma(connection, "foreign_key_list", name):
        parents.setdefault(row[0], []).append(row)
    for _, rows in sorted(parents.items()):
        rows.sort(key=lambda row: row[1])
        table.foreign_keys.append(
            SqliteForeignKey(
                tuple(row[3] for row in rows),
                rows[0][2],
                tuple(row[4] for row in rows if row[4] is not None),
            )
        )
    return table


def scan(connection: sqlite3.Connection, table: SqliteTable) -> list[Stored]:
    """Return what every column holds, from one scan of the table (100 columns at a time)."""
    found: list[Stored] = []
    for start in range(0, len(table.columns), _BATCH):
        batch = [quoted(column.name) for column in table.columns[start : start + _BATCH]]
        wanted = ", ".join(
            f"sum(typeof({c}) = 'integer'), sum(typeof({c}) = 'real'), sum(typeof({c}) = 'text'),"
            f" sum(typeof({c}) = 'blob'),"
            f" max(CASE WHEN typeof({c}) = 'text' THEN length(CAST({c} AS BLOB)) END),"
            f" min(CASE WHEN typeof({c}) = 'integer' THEN {c} END),"
            f" max(CASE WHEN typeof({c}) = 'integer' THEN {c} END)"
            for c in batch
        )
        query = f"SELECT count(*), {wanted} FROM {quoted(table.name)}"  # noqa: S608
        row = connection.execute(query).fetchone()
        for i in range(len(batch)):
            found.append(Stored(row[0], *(n or 0 for n in row[1 + 7 * i : 8 + 7 * i])))
    return found


def read_values(
    connection: sqlite3.Connection, table: str, column: str, storage: str | None
) -> Iterator[Any]:
    """Yield the column's values that are not NULL, or only those of one storage class."""
    name = quoted(column)
    query = f"SELECT {name} FROM {quoted(table)} WHERE "  # noqa: S608
    if storage is None:
        rows = connection.execute(query + f"{name} IS NOT NULL")
    else:
        rows = connection.execute(query + f"typeof({name}) = ?", (storage,))
    for (value,) in rows:
        yield value
