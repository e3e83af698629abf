"""Read delimited text row by row, with the physical line of each, and find its dialect."""

import csv
import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coret_pg.errors import LoadError
from coret_pg.loading.report import TEXT_LIMIT
from coret_pg.loading.sources import opened, suffix_of

DELIMITERS = ",;\t|"
_SAMPLE = 256 * 1024
_CHUNK = 1024 * 1024
_FIELD_LIMIT = min(sys.maxsize, 2**30)  # Postgres holds no longer text
_UNDECODED = re.compile("[\udc80-\udcff]")
_MARKS = (("utf-8-sig", b"\xef\xbb\xbf"), ("utf-16", b"\xff\xfe"), ("utf-16", b"\xfe\xff"))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is written."""

    encoding: str
    delimiter: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row and the line it starts on; `fields` is None where it can't be loaded."""

    line: int
    fields: list[str] | None
    reason: str = ""
    text: str = ""


class _Lines:
    """The lines of a file; remembers what the current row was read from."""

    def __init__(self, file: io.TextIOWrapper) -> None:
        self._file = file
        self.start_row()

    def start_row(self) -> None:
        self.text = ""
        self.has_nul = False
        self.undecoded = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._file)
        if len(self.text) < TEXT_LIMIT:
            self.text += line[:TEXT_LIMIT]
        self.has_nul = self.has_nul or "\0" in line
        self.undecoded = self.undecoded or (
            not line.isascii() and _UNDECODED.search(line) is not None
        )
        return line


def find_dialect(path: Path) -> tuple[Dialect, str | None]:
    """Return how the file is written, and a remark where its encoding is a guess.

    Raises LoadError where the file is empty or can't be read.
    """
    with opened(path) as file:
        sample = file.read(_SAMPLE)
    if not sample.strip():
        raise LoadError(
            f"{path} is an empty file", remedy="A table needs at least a line with its header"
        )
    encoding = next((name for name, mark in _MARKS if sample.startswith(mark)), None)
    remark = None
    if encoding is None:
        encoding = "utf-8" if _is_utf8(path) else "cp1252"
        if encoding == "cp1252":
            remark = f"{path.name}: not UTF-8: read as Windows-1252"
    if suffix_of(path, (".tsv", ".tsv.gz")):
        return Dialect(encoding, "\t"), remark
    text = sample.decode(encoding, "ignore" if encoding == "utf-16" else "surrogateescape")
    return Dialect(encoding, _find_delimiter(text, cut=len(sample) == _SAMPLE)), remark


def _is_utf8(path: Path) -> bool:
    """Tell whether the lines that are not ASCII are UTF-8 at least as often as not."""
    decoded = damaged = 0
    with opened(path) as file:
        for line in file:
            if not line.isascii():
                try:
                    line.decode()
                except UnicodeDecodeError:
                    damaged += 1
                else:
                    decoded += 1
    return decoded >= damaged


def _find_delimiter(text: str, *, cut: bool) -> str:
    """Return the delimiter that splits most rows of the sample as it splits the first one."""
    lines = text.splitlines(keepends=True)
    if cut and len(lines) > 1:
        lines.pop()
    best = (0.0, 0)
    found = DELIMITERS[0]
    for delimiter in DELIMITERS:
        with _long_fields():
            try:
                rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
            except csv.Error:
                continue
        width = len(rows[0]) if rows else 0
        if width > 1:
            share = sum(len(row) == width for row in rows) / len(rows)
            if (share, width) > best:
                best, found = (share, width), delimiter
    return found


@contextmanager
def _long_fields() -> Iterator[None]:
    before = csv.field_size_limit(_FIELD_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_rows(path: Path, dialect: Dialect) -> Iterator[Row]:
    """Yield the rows, the header first; blank lines are none.

    A row that is quoted wrongly, holds a NUL or can't be decoded has no fields, but a
    reason. Raises LoadError where the file can't be read.
    """
    errors = "strict" if dialect.encoding == "utf-16" else "surrogateescape"
    with opened(path) as raw, _long_fields():
        buffered = io.BufferedReader(raw, _CHUNK)  # type: ignore[type-var]
        text = io.TextIOWrapper(buffered, dialect.encoding, errors, newline="")
        lines = _Lines(text)
        reader = csv.reader(lines, delimiter=dialect.delimiter, strict=True)
        while True:
            lines.start_row()
            line = reader.line_num + 1
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(line, None, _quoting_reason(error, line, reader.line_num), lines.text)
                continue
            except UnicodeDecodeError as error:
                raise LoadError(
                    f"{path}, line {reader.line_num + 1}: not {dialect.encoding}",
                    remedy="Convert the file to UTF-8",
                ) from error
            if not fields:
                continue
            if lines.has_nul:
                yield Row(line, None, "holds a NUL, which Postgres can't store", lines.text)
            elif lines.undecoded:
                yield Row(line, None, f"holds bytes that are not {dialect.encoding}", lines.text)
            else:
                yield Row(line, fields)


def _quoting_reason(error: csv.Error, first: int, last: int) -> str:
    if "unexpected end" in str(error):
        return f"a quote that is never closed takes in the rest of the file (to line {last})"
    return f"quoted wrongly: {error}"
