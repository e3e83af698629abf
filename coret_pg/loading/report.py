"""What a load has to say: tables, remarks, rejected rows, and what failed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from coret_pg.errors import CoretError, LoadError

# Called with the table, the rows done so far, and the rows in total where that is known.
Progress = Callable[[str, int, int | None], None]

LISTED_REJECTS = 1_000  # of one source; the others are only counted, so memory stays bounded
TEXT_LIMIT = 500


class RowRefused(Exception):
    """A row can't be stored as it is; the argument is the reason."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that was not loaded.

    `line` is the physical line of a text file, and the row's number in other files.
    """

    file: Path
    line: int
    reason: str
    text: str


class LoadedTable(NamedTuple):
    """A table of the pool; `name` is schema.table where the source has several schemas."""

    name: str
    rows: int
    rejected: int


@dataclass(slots=True)
class LoadReport:
    """What became of one source."""

    file: Path
    schema: str
    schemas: list[str] = field(default_factory=list)
    tables: list[LoadedTable] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    rejects: list[RejectedRow] = field(default_factory=list)
    rejected: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """Return the number of rows loaded into all tables."""
        return sum(table.rows for table in self.tables)

    def reject(self, file: Path, line: int, reason: str, text: str) -> None:
        """Note a rejected row; beyond the first 1,000 of a source rows are only counted."""
        self.rejected += 1
        if len(self.rejects) < LISTED_REJECTS:
            self.rejects.append(RejectedRow(file, line, reason, printable(text)))


class LoadFailed(LoadError):
    """One or more sources can't be loaded; `reports` holds those that were."""

    def __init__(
        self,
        what: str,
        *,
        remedy: str,
        reports: Sequence[LoadReport] = (),
        failures: Sequence[CoretError] = (),
    ) -> None:
        super().__init__(what, remedy=remedy)
        self.reports = list(reports)
        self.failures = list(failures)


def printable(text: str) -> str:
    """Return the text cut to 500 characters, with NULs and undecodable bytes written out."""
    cut = text[:TEXT_LIMIT].replace("\0", "\\x00")
    decoded = cut.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return decoded[:TEXT_LIMIT]


def rejects_error(report: LoadReport) -> LoadError:
    """Return the error of a strict load: it lists the first 20 rejected rows."""
    lines = "; ".join(f"{row.file}:{row.line}: {row.reason}" for row in report.rejects[:20])
    more = f" (and {report.rejected - 20} more)" if report.rejected > 20 else ""
    return LoadError(
        f"{report.file}: {report.rejected} rows can't be stored as they are: {lines}{more}",
        remedy="Correct these rows, or load without strict to leave them out",
    )
