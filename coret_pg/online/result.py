"""The answer to a question, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Role = Literal["selected", "added by compatibility", "added by expansion", "bridge", "not chosen"]
Path = Literal["llm", "no-llm", "fallback"]


@dataclass(frozen=True)
class Candidate:
    """A table near the question."""

    rank: int
    table_id: int
    schema_name: str
    table_name: str
    relevance: float
    is_current: bool = True

    @property
    def name(self) -> str:
        """Return schema.table, a table's identity in every output."""
        return f"{self.schema_name}.{self.table_name}"


@dataclass(frozen=True)
class Pair:
    """Two tables and the columns that join them best.

    `score`: the compatibility of the two tables, 0 where no pair of columns passes the gate or
    it was not asked for. `confidence`: how likely these columns are meant to be joined, 0 where
    nothing speaks for it but the values. `evidence`: inferred, declared or confirmed.
    """

    table_a: int
    table_b: int
    columns_a: Sequence[str]
    columns_b: Sequence[str]
    score: float
    cardinality: str
    confidence: float = 0.0
    evidence: str = "inferred"

    def other(self, table_id: int) -> int:
        """Return the table at the other end."""
        return self.table_b if table_id == self.table_a else self.table_a


@dataclass(frozen=True)
class Choice:
    """The tables selected, nearest first, and the candidates they were selected from.

    `bridges`: those that were looked at only since they join others. `reasons`: why a table was
    chosen, in words.
    """

    table_ids: list[int]
    candidates: list[Candidate]
    bridges: frozenset[int] = frozenset()
    reasons: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ChosenTable:
    """A table of the answer, and how it came in.

    `partner`: the table it is joined to, by `own_columns` and `partner_columns` of as many, with
    that confidence: the one that brought it in, else its surest neighbour; None where nothing
    joins it.
    """

    name: str
    schema_name: str
    table_name: str
    rank: int
    relevance: float
    role: Role
    partner: str | None = None
    own_columns: Sequence[str] | None = None
    partner_columns: Sequence[str] | None = None
    confidence: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class JoinedColumns:
    """Columns of two tables that join them; the cardinality is read from left to right.

    `confidence`: how likely they are meant; `evidence`: inferred, declared or confirmed.
    """

    left_table: str
    left_columns: Sequence[str]
    right_table: str
    right_columns: Sequence[str]
    cardinality: str
    confidence: float
    evidence: str

    @property
    def conditions(self) -> list[str]:
        """Return `table.column = table.column` for each pair of columns."""
        return [
            f"{self.left_table}.{left} = {self.right_table}.{right}"
            for left, right in zip(self.left_columns, self.right_columns, strict=True)
        ]

    def __str__(self) -> str:
        sure = f"({self.cardinality}, confidence {self.confidence:.2f})"
        return f"{' AND '.join(self.conditions)}  {sure}"


@dataclass(frozen=True)
class Join(JoinedColumns):
    """A join of the answer; `score`: the compatibility of the two tables."""

    score: float


@dataclass(frozen=True)
class Retrieval:
    """The joinable set of tables that answers a question, and the way it was found.

    `path`: "llm" a chat model selected; "no-llm" none is configured; "fallback" the chat model
    failed and `path_reason` says why. `seconds` holds the time of each stage.
    """

    retrieval_id: int
    question: str
    tables: Sequence[ChosenTable]
    joins: Sequence[Join]
    candidates: Sequence[Candidate]
    schema_slice: str
    path: Path
    path_reason: str | None
    is_connected: bool
    warnings: Sequence[str]
    seconds: Mapping[str, float]

    @property
    def table_names(self) -> list[str]:
        """Return the qualified names of the set, in order of relevance."""
        return [table.name for table in self.tables]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)
