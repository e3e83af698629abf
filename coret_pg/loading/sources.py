"""Find the source databases under a path."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

from coret_pg.errors import LoadError

Kind = Literal["sqlite", "dump", "tables"]

SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
DUMP_SUFFIXES = (".sql", ".sql.gz")
CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet",)
LOADABLE = (
    "SQLite (.sqlite .sqlite3 .db), pg_dump (.sql .sql.gz), CSV (.csv .tsv, also .gz), Parquet"
)
ARCHIVE_MAGIC = b"PGDMP"


@dataclass(frozen=True, slots=True)
class Source:
    """One source database: a file, or all the table files of one folder."""

    kind: Kind
    path: Path
    name: str
    files: tuple[Path, ...]


def find_sources(path: Path) -> list[Source]:
    """Return the sources under a path, in the order of their paths.

    Raises LoadError where the path is missing or holds nothing loadable.
    """
    try:
        if path.is_dir():
            found = list(_in_folder(path))
            if not found:
                raise LoadError(
                    f"The folder {path} holds nothing that can be loaded",
                    remedy=f"These files can be loaded: {LOADABLE}",
                )
            return found
        if not path.exists():
            raise LoadError(f"{path} does not exist", remedy="Check the path")
    except OSError as error:
        raise unreadable(path, error) from error
    source = _from_file(path)
    if source is None:
        _refuse_archive(path)
        raise LoadError(
            f"{path} is no kind of file that can be loaded",
            remedy=f"These files can be loaded: {LOADABLE}",
        )
    return [source]


def unreadable(path: Path, error: Exception) -> LoadError:
    """Return the error of a file that can't be read or is damaged."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return LoadError(f"{path} can't be read: {reason}", remedy="Check the file and its permissions")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked where its name ends in .gz.

    Raises LoadError where the file can't be read or is damaged, also while it is read.
    """
    try:
        if path.name.lower().endswith(".gz"):
            with gzip.open(path, "rb") as packed:
                yield cast(BinaryIO, packed)
        else:
            with path.open("rb") as plain:
                yield plain
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from error


def suffix_of(path: Path, suffixes: tuple[str, ...]) -> str | None:
    """Return the longest of the suffixes that the file's name ends in, in any case."""
    name = path.name.lower()
    fitting = [s for s in suffixes if name.endswith(s) and len(name) > len(s)]
    return max(fitting, key=len, default=None)


def stem_of(path: Path) -> str:
    """Return the file's name without its suffix, both of them for .csv.gz."""
    known = (*SQLITE_SUFFIXES, *DUMP_SUFFIXES, *CSV_SUFFIXES, *PARQUET_SUFFIXES)
    suffix = suffix_of(path, known)
    return path.name[: -len(suffix)] if suffix else path.stem


def refuse_archive_bytes(path: Path, head: bytes) -> None:
    """Raise LoadError where the first bytes are those of a pg_dump archive."""
    if head.startswith((ARCHIVE_MAGIC, b"toc.dat\0")):
        raise LoadError(
            f"{path} is a pg_dump archive (custom or tar format), not plain SQL",
            remedy=f"Unpack it first: pg_restore -f - '{path.name}' > plain.sql",
        )


def _refuse_archive(path: Path) -> None:
    if path.is_file():
        with opened(path) as file:
            refuse_archive_bytes(path, file.read(16))


def _in_folder(top: Path) -> Iterator[Source]:
    for folder, subfolders, names in os.walk(top, onerror=_raise):
        # Hidden files are not data: .git, ._copies of other systems.
        subfolders[:] = sorted(n for n in subfolders if not n.startswith((".", "__MACOSX")))
        here = Path(folder)
        tables = []
        for name in sorted(names):
            file = here / name
            if name.startswith(".") or not file.is_file():
                continue
            if suffix_of(file, CSV_SUFFIXES + PARQUET_SUFFIXES):
                tables.append(file)
            elif (source := _from_file(file)) is not None:
                yield source
        if tables:
            yield Source("tables", here, here.resolve().name, tuple(tables))


def _raise(error: OSError) -> None:
    raise error


def _from_file(path: Path) -> Source | None:
    kind: Kind
    if suffix_of(path, SQLITE_SUFFIXES):
        kind = "sqlite"
    elif suffix_of(path, DUMP_SUFFIXES):
        kind = "dump"
    elif suffix_of(path, CSV_SUFFIXES + PARQUET_SUFFIXES):
        kind = "tables"
    else:
        return None
    return Source(kind, path, stem_of(path), (path,))
