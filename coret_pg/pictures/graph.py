"""What is drawn: tables, and the joins between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PictureTable:
    """A table, and those of its columns that are shown."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class PictureJoin:
    """A join of two tables; the cardinality is read from left to right: 1:1, N:1, 1:N or N:M."""

    left: str
    left_columns: tuple[str, ...]
    right: str
    right_columns: tuple[str, ...]
    cardinality: str
    confidence: float
    is_inferred: bool

    @property
    def ends(self) -> frozenset[tuple[str, str]]:
        """Return the tables with their columns that are joined, whichever is left."""
        return frozenset(
            [(self.left, ", ".join(self.left_columns)), (self.right, ", ".join(self.right_columns))]
        )

    @property
    def label(self) -> str:
        """Return the columns that are equal and the confidence."""
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        columns = ", ".join(f"{left} = {right}" for left, right in pairs)
        return f"{columns} ({self.confidence:.2f})"


@dataclass(frozen=True)
class Picture:
    """A join graph; every table that a join names is among the tables."""

    title: str
    tables: tuple[PictureTable, ...]
    joins: tuple[PictureJoin, ...]
