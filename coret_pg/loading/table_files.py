"""Load CSV, TSV and Parquet files: the tables of one source."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from coret_pg.errors import LoadError
from coret_pg.loading.csv_reader import Dialect, Row, find_dialect, read_rows
from coret_pg.loading.names import SYSTEM_COLUMNS, NameBook
from coret_pg.loading.parquet import load_parquet
from coret_pg.loading.sources import PARQUET_SUFFIXES, Source, stem_of, suffix_of
from coret_pg.loading.target import Column, Target
from coret_pg.loading.values import Guess


def load_table_files(source: Source, target: Target) -> None:
    """Load every file of the source as one table.

    Raises LoadError for a file that can't be read, or two that would be the same table.
    """
    target.create_schemas([target.schema])
    names = NameBook(str(source.path), target.report.remarks)
    for number, file in enumerate(source.files, 1):
        name = names.add(stem_of(file), empty=f"table_{number}")
        if suffix_of(file, PARQUET_SUFFIXES):
            load_parquet(file, name, target)
        else:
            _load_csv(file, name, target)


def _load_csv(file: Path, name: str, target: Target) -> None:
    dialect, remark = find_dialect(file)
    if remark:
        target.report.remarks.append(remark)
    header = _header(file, dialect)
    names = NameBook(f"{file.name}: column", target.report.remarks, taken=SYSTEM_COLUMNS)
    titles = [
        names.add(title, empty=f"column_{number}", number_doubles=True)
        for number, title in enumerate(header, 1)
    ]
    guesses = [Guess() for _ in titles]
    total = 0
    for row in _data_rows(file, dialect, len(titles)):
        if row.fields is not None:
            total += 1
            for guess, value in zip(guesses, row.fields, strict=True):
                if value:
                    guess.see(value)
    columns = [Column(title, guess.type) for title, guess in zip(titles, guesses, strict=True)]
    target.create_table(name, columns)
    target.copy_rows(name, columns, _loadable(file, dialect, len(titles), target), total)


def _header(file: Path, dialect: Dialect) -> list[str]:
    first = next(read_rows(file, dialect), None)
    if first is None:
        raise LoadError(f"{file} is an empty file", remedy="A table needs a line with its header")
    if first.fields is None:
        raise LoadError(
            f"{file}, line {first.line}: the header can't be read: {first.reason}",
            remedy="Correct the header",
        )
    return first.fields


def _data_rows(file: Path, dialect: Dialect, width: int) -> Iterator[Row]:
    rows = read_rows(file, dialect)
    next(rows, None)
    for row in rows:
        if row.fields is not None and len(row.fields) != width:
            reason = f"has {len(row.fields)} fields, the header has {width}"
            yield Row(row.line, None, reason, dialect.delimiter.join(row.fields))
        else:
            yield row


def _loadable(
    file: Path, dialect: Dialect, width: int, target: Target
) -> Iterator[Sequence[str | None]]:
    for row in _data_rows(file, dialect, width):
        if row.fields is None:
            target.report.reject(file, row.line, row.reason, row.text.rstrip("\r\n"))
        else:
            yield [value or None for value in row.fields]
