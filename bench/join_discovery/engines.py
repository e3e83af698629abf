"""The ways that read CSV files: the export, DuckDB, and Desbordante's Spider."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path

import psycopg
from psycopg import sql

from bench.join_discovery.columns import (
    NumberedColumn,
    fingerprint,
    passes,
    pool_columns,
    statement,
)
from bench.join_discovery.measure import Measured, Meter
from bench.join_discovery.process import Pool


def run_export(pool: Pool, meter: Meter, measured: Measured) -> None:
    """Write every table to a CSV file, with a last row of NULLs."""
    pool.csv_folder.mkdir(parents=True, exist_ok=True)
    with psycopg.connect(pool.dsn, autocommit=True) as connection, meter.stage("export"):
        for table, columns in _tables(pool_columns(connection)):
            copy_out = sql.SQL("COPY {} TO STDOUT (FORMAT csv, HEADER)").format(columns[0].relation)
            with _file(pool, table).open("wb") as file, connection.cursor() as cursor:
                with cursor.copy(copy_out) as copy:
                    for block in copy:
                        file.write(block)
                file.write(b"," * (len(columns) - 1) + b"\n")
    sizes = (file.stat().st_size for file in pool.csv_folder.iterdir())
    measured.facts["csv_mb"] = sum(sizes) / 2**20


def run_duckdb(pool: Pool, meter: Meter, measured: Measured) -> None:
    """Load the files, join the columns' distinct values with each other, count per pair."""
    with psycopg.connect(pool.dsn) as connection:
        columns = pool_columns(connection)
    with import_module("duckdb").connect() as database:
        with meter.stage("load"):
            database.execute(_text("duckdb_tables"))
            for table, members in _tables(columns):
                file = str(_file(pool, table)).replace("'", "''")
                database.execute(_text("duckdb_load").format(file=file))
                for column in members:
                    database.execute(
                        _text("duckdb_column").format(
                            name=column.column_name.replace('"', '""'),
                            number=column.number,
                            table=column.table,
                            type=column.type_name,
                        )
                    )
        with meter.stage("run"):
            found = database.execute(_text("duckdb_pairs")).fetchall()
    measured.pairs, measured.fingerprint = fingerprint(found)


def run_desbordante(pool: Pool, meter: Meter, measured: Measured) -> None:
    """Load the files into Spider and run it; then keep the pairs that pass the gate."""
    with psycopg.connect(pool.dsn) as connection:
        columns = pool_columns(connection)
    files = [(str(_file(pool, table)), ",", True) for table, _ in _tables(columns)]
    spider = import_module("desbordante").ind.algorithms.Spider()
    with meter.stage("load"):
        spider.load_data(tables=files)
    with meter.stage("run"):
        spider.execute()
    try:
        dependencies = spider.get_inds()
    except MemoryError:
        # Tens of millions of Python objects: what was measured stands, unchecked.
        measured.facts["unread"] = 1
        return
    measured.facts["dependencies"] = len(dependencies)
    measured.pairs, measured.fingerprint = fingerprint(
        _gated(pool, columns, ((d.get_lhs(), d.get_rhs()) for d in dependencies))
    )


def _gated(
    pool: Pool, columns: list[NumberedColumn], dependencies: Iterator[tuple[object, object]]
) -> set[tuple[int, int]]:
    """Return the pairs of columns of dependencies that pass: each pair once, in either order."""
    places = {
        (table, place): column
        for table, (_, members) in enumerate(_tables(columns))
        for place, column in enumerate(members)
    }
    counts: dict[int, tuple[int, bool]] = {}
    with psycopg.connect(pool.dsn, autocommit=True) as connection:
        for column in columns:
            query = statement("value_counts").format(
                column=column.identifier, relation=column.relation
            )
            row = connection.execute(query).fetchone()
            counts[column.number] = row or (0, False)
    found: set[tuple[int, int]] = set()
    for left, right in dependencies:
        one, other = places[_place(left)], places[_place(right)]
        if (
            one.table != other.table
            and one.type_name == other.type_name
            and passes(*counts[one.number], *counts[other.number])
        ):
            found.add((min(one.number, other.number), max(one.number, other.number)))
    return found


def _place(combination: object) -> tuple[int, int]:
    table, (place,) = combination.to_index_tuple()  # type: ignore[attr-defined]
    return table, place


def _tables(columns: list[NumberedColumn]) -> Iterator[tuple[int, list[NumberedColumn]]]:
    for table, members in groupby(columns, key=lambda column: column.table):
        yield table, list(members)


def _file(pool: Pool, table: int) -> Path:
    return pool.csv_folder / f"{table}.csv"


def _text(name: str) -> str:
    return statement(name).as_string()
