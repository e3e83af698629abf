"""The public benchmark data: every file loads, with every row and every value."""

import gzip
import os
import sqlite3
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from coret_pg.loading import load_path

BENCH = Path(
    os.environ.get("CORET_BENCH_DATA")
    or Path(__file__).resolve().parents[2].parent / "shared" / "bench"
)
pytestmark = [
    pytest.mark.bench_data,
    pytest.mark.skipif(
        not BENCH.is_dir(), reason=f"no benchmark data at {BENCH}: set CORET_BENCH_DATA"
    ),
]


@pytest.fixture
def connection(dsn):
    with psycopg.connect(dsn) as opened:
        yield opened


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def same(found, value):
    if value is None or found is None:
        return found is value
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            value = value.decode("cp1252")
    if isinstance(found, str):
        return found == str(value)
    if isinstance(found, datetime):
        return found == datetime.fromisoformat(value)
    if isinstance(found, bool):
        return found == (str(value).lower() in {"1", "t", "true", "y", "yes"})
    if isinstance(found, Decimal):
        return found == Decimal(str(value))
    return str(found) == value if isinstance(value, str) else found == value


def differences(connection, database, schema, table):
    """Return the rows that differ between the file and the pool, in the order they came."""
    stored = database.execute(f"SELECT * FROM {quoted(table)}").fetchall()
    query = sql.SQL("SELECT * FROM {} ORDER BY ctid").format(sql.Identifier(schema, table))
    found = connection.execute(query).fetchall()
    assert len(found) == len(stored), (schema, table)
    return [
        (schema, table, wanted, row)
        for wanted, row in zip(stored, found, strict=True)
        if not all(map(same, row, wanted))
    ]


def test_every_value_of_spider_dev_arrives(connection):
    folder = BENCH / "spider" / "databases" / "dev"
    reports = load_path(connection, folder)
    assert len(reports) == 20
    assert sum(len(report.tables) for report in reports) == 80
    different = []
    for report in reports:
        assert report.rejected == 0
        with closing(sqlite3.connect(f"file:{report.file}?mode=ro", uri=True)) as database:
            database.text_factory = bytes
            for table, rows, _ in report.tables:
                counted = database.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0]
                assert rows == counted, (report.schema, table)
                different += differences(connection, database, report.schema, table)
    assert different == []


def copied_rows(path):
    """Count the rows of all COPY blocks, simply."""
    rows = 0
    inside = False
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if inside:
                inside = line != "\\.\n"
                rows += inside
            else:
                inside = line.startswith("COPY ")
    return rows


def test_every_row_of_the_dumps_arrives(connection):
    reports = load_path(connection, BENCH / "postgres")
    assert [r.schema for r in reports] == [
        *("chinook", "employee", "iso3166", "northwind", "pagila", "world")
    ]
    for report in reports:
        assert report.rows == copied_rows(report.file) > 0
        for table, rows, _ in report.tables:
            query = sql.SQL("SELECT count(*) FROM ONLY {}").format(
                sql.Identifier(report.schema, table)
            )
            partitioned = table == "payment" and report.schema == "pagila"
            assert partitioned or connection.execute(query).fetchone() == (rows,)
    remarks = [remark for report in reports for remark in report.remarks]
    assert all("group_concat" in remark for remark in remarks)
    assert len(remarks) == 3
    keys = connection.execute(
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' "
        "AND connamespace = 'northwind'::regnamespace"
    ).fetchone()
    assert keys == (13,)
    assert connection.execute("SELECT count(*) FROM pagila.payment").fetchone() == (16_049,)
