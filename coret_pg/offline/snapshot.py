"""The snapshot step: a table's name, header and a few sampled rows, as Markdown."""

from collections.abc import Sequence

import psycopg
from psycopg.types.json import Jsonb

from coret_pg.database.sqlfiles import query
from coret_pg.offline.catalog import read_columns
from coret_pg.offline.source import PoolTable, Source

_CELL_LIMIT = 60


def take_snapshot(
    connection: psycopg.Connection, source: Source, table: PoolTable, *, rows: int, seed: int
) -> None:
    """Sample a table's rows and store its snapshot; raise Unreadable."""
    columns = read_columns(connection, table.table_id)
    names = [column.column_name for column in columns]
    sampled = source.sample_rows(table, columns, rows, seed) if columns and rows else []
    connection.execute(
        query("store_snapshot"),
        {
            "table_id": table.table_id,
            "column_names": names,
            "sampled_rows": Jsonb(sampled),
            "markdown": render_markdown(table.table_name, names, sampled),
            "seed": seed,
        },
    )


def render_markdown(
    table_name: str, column_names: Sequence[str], rows: Sequence[Sequence[str | None]]
) -> str:
    """Return a Markdown table: name, header, rows; cells on one line, cut at 60 characters."""
    lines = [f"Table: {_cell(table_name)}"]
    if column_names:
        lines.append("| " + " | ".join(_cell(name) for name in column_names) + " |")
        lines.append("|" + " --- |" * len(column_names))
        lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    text = " ".join(value.split()).replace("|", "\\|")
    return text if len(text) <= _CELL_LIMIT else text[: _CELL_LIMIT - 1] + "…"
