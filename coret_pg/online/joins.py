"""Joins as people ask for them: of a table, between two tables, of a schema; and their verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import psycopg
from psycopg.rows import class_row

from coret_pg.database.sqlfiles import query
from coret_pg.errors import InputError
from coret_pg.online.result import JoinedColumns, Retrieval
from coret_pg.pictures import Picture, PictureJoin, PictureTable

Verdict = Literal["accepted", "rejected", "undecided"]
# Below this a join is rather a coincidence than meant.
LEAST_CONFIDENCE = 0.2
_SEVERAL_COLUMNS = re.compile(r"(?P<table>.+?)\s*\((?P<columns>.+)\)\s*")


@dataclass(frozen=True)
class TableJoin:
    """A join of a table, seen from it; the cardinality is read from it to the other."""

    other_table: str
    own_columns: Sequence[str]
    other_columns: Sequence[str]
    cardinality: str
    confidence: float
    evidence: str
    reasons: Sequence[str]


@dataclass(frozen=True)
class PathJoin(JoinedColumns):
    """A join on the way from one table to another; `hop` counts them from 1."""

    hop: int


@dataclass(frozen=True)
class JoinEnd:
    """A table and the columns it is joined by."""

    table: str
    columns: Sequence[str]

    @classmethod
    def parse(cls, text: str) -> JoinEnd:
        """Read `schema.table.column` or `schema.table(column, column)`; raise InputError."""
        several = _SEVERAL_COLUMNS.fullmatch(text.strip())
        if several:
            columns = [column.strip() for column in several["columns"].split(",")]
            table = several["table"]
        else:
            table, _, column = text.strip().rpartition(".")
            columns = [column]
        if not table or not all(columns):
            raise InputError(
                f"{text!r} names no column of a table",
                remedy="Write schema.table.column, or schema.table(column, column)",
            )
        return cls(table, columns)


def joins_of(
    connection: psycopg.Connection, table: str, min_confidence: float = LEAST_CONFIDENCE
) -> list[TableJoin]:
    """Return the joins of a table, surest first (SQL: coret.compatible)."""
    with connection.cursor(row_factory=class_row(TableJoin)) as cursor:
        return cursor.execute(
            "SELECT * FROM coret.compatible(%s, %s::real)", [table, min_confidence]
        ).fetchall()


def join_path(
    connection: psycopg.Connection, from_table: str, to_table: str, max_hops: int = 4
) -> list[PathJoin]:
    """Return the surest way to join two tables, empty where there is none (coret.join_path)."""
    with connection.cursor(row_factory=class_row(PathJoin)) as cursor:
        return cursor.execute(
            "SELECT * FROM coret.join_path(%s, %s, %s)", [from_table, to_table, max_hops]
        ).fetchall()


def decide_join(
    connection: psycopg.Connection, left: JoinEnd, right: JoinEnd, verdict: Verdict
) -> None:
    """Write a person's verdict on a join down and apply it (SQL: coret.decide_join)."""
    connection.execute(
        "SELECT coret.decide_join(%s, %s::text[], %s, %s::text[], %s)",
        [left.table, list(left.columns), right.table, list(right.columns), verdict],
    )


def picture_schemas(
    connection: psycopg.Connection,
    schemas: Sequence[str],
    min_confidence: float = LEAST_CONFIDENCE,
) -> Picture:
    """Return the join graph of all tables of some schemas; raise InputError for unknown ones."""
    rows = connection.execute(
        query("schema_edges"), {"schemas": list(schemas), "min_confidence": min_confidence}
    ).fetchall()
    if not rows:
        raise InputError(
            f"No table of the pool is in {', '.join(schemas)}",
            remedy="Name a schema whose tables were refreshed (coret.catalog_table lists them)",
        )
    joins = [
        PictureJoin(
            left=child, left_columns=tuple(child_columns), right=parent,
            right_columns=tuple(parent_columns), cardinality=cardinality, confidence=confidence,
            is_inferred=evidence == "inferred",
        )
        for child, child_columns, parent, parent_columns, cardinality, confidence, evidence in rows
        if parent is not None
    ]  # fmt: skip
    return _picture(", ".join(schemas), list(dict.fromkeys(row[0] for row in rows)), joins)


def picture_answer(answer: Retrieval) -> Picture:
    """Return the join graph of an answer."""
    joins = [
        PictureJoin(
            left=join.left_table, left_columns=tuple(join.left_columns), right=join.right_table,
            right_columns=tuple(join.right_columns), cardinality=join.cardinality,
            confidence=join.confidence, is_inferred=join.evidence == "inferred",
        )
        for join in answer.joins
    ]  # fmt: skip
    return _picture(answer.question, answer.table_names, joins)


def _picture(title: str, tables: Sequence[str], joins: Sequence[PictureJoin]) -> Picture:
    columns: dict[str, dict[str, None]] = {table: {} for table in tables}
    # Of two columns with the same values each may be the other's parent: one line says it.
    surest: dict[frozenset[tuple[str, str]], PictureJoin] = {}
    for join in sorted(joins, key=lambda join: -join.confidence):
        surest.setdefault(join.ends, join)
    joins = [join for join in joins if surest[join.ends] is join]
    for join in joins:
        columns[join.left].update(dict.fromkeys(join.left_columns))
        columns[join.right].update(dict.fromkeys(join.right_columns))
    return Picture(
        title=title,
        tables=tuple(PictureTable(name, tuple(names)) for name, names in columns.items()),
        joins=tuple(joins),
    )
