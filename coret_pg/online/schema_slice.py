"""The schema slice: the chosen tables as CREATE TABLE text, for whoever writes the SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from coret_pg.database.sqlfiles import query
from coret_pg.online.result import Join

_VALUES_SHOWN = 3
_VALUE_LIMIT = 40


@dataclass(frozen=True)
class SliceColumn:
    """A column of a chosen table, as the slice shows it; names are quoted where SQL needs it."""

    table_id: int
    table_name: str
    purpose: str | None
    primary_key: list[str] | None
    column_name: str
    type_name: str
    is_not_null: bool
    column_comment: str | None
    frequent_values: list[str] | None
    is_there: bool


def read_slice(
    connection: psycopg.Connection, table_ids: Sequence[int], joins: Sequence[Join]
) -> tuple[str, list[str]]:
    """Return the schema slice of some tables, in their order, and warnings.

    Columns dropped or renamed after the last refresh are left out, with a warning.
    """
    with connection.cursor(row_factory=class_row(SliceColumn)) as cursor:
        columns = cursor.execute(query("slice_columns"), {"table_ids": list(table_ids)}).fetchall()
    gone = sorted({f"{c.table_name}.{c.column_name}" for c in columns if not c.is_there})
    warnings = []
    if gone:
        warnings.append(
            f"{', '.join(gone)}: dropped or renamed after the last refresh, left out; "
            "run `coret refresh`"
        )
    return render_slice([c for c in columns if c.is_there], table_ids, joins), warnings


def render_slice(
    columns: Sequence[SliceColumn], table_ids: Sequence[int], joins: Sequence[Join]
) -> str:
    """Return CREATE TABLE statements with purposes, comments and sample values, then the joins."""
    statements = [
        _create_table([column for column in columns if column.table_id == table_id])
        for table_id in table_ids
    ]
    parts = [statement for statement in statements if statement]
    if joins:
        conditions = [f"-- {' '.join(str(join).splitlines())}" for join in joins]
        parts.append("\n".join(["-- Joins", *conditions]))
    return "\n\n".join(parts)


def _create_table(columns: Sequence[SliceColumn]) -> str:
    if not columns:
        return ""
    table = columns[0]
    lines = [f"-- {_one_line(table.purpose)}"] if table.purpose else []
    lines.append(f"CREATE TABLE {table.table_name} (")
    body = [(_definition(column), _remark(column)) for column in columns]
    if table.primary_key:
        body.append((f"PRIMARY KEY ({', '.join(table.primary_key)})", ""))
    for position, (definition, remark) in enumerate(body, start=1):
        comma = "," if position < len(body) else ""
        lines.append(f"    {definition}{comma}{'  -- ' + remark if remark else ''}")
    return "\n".join([*lines, ");"])


def _definition(column: SliceColumn) -> str:
    return f"{column.column_name} {column.type_name}{' NOT NULL' if column.is_not_null else ''}"


def _remark(column: SliceColumn) -> str:
    values = ", ".join(_quoted(value) for value in (column.frequent_values or [])[:_VALUES_SHOWN])
    parts = [_one_line(column.column_comment), f"e.g. {values}" if values else ""]
    return "; ".join(part for part in parts if part)


def _quoted(value: str) -> str:
    text = _one_line(value)
    text = text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"
    return "'" + text.replace("'", "''") + "'"


def _one_line(text: str | None) -> str:
    # A line break inside a comment would turn data into SQL.
    return " ".join((text or "").split())
