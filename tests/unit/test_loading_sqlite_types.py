"""The type of a SQLite column: what is declared, unless the stored values say otherwise."""

import sqlite3
from contextlib import closing
from functools import partial

import pytest

from coret_pg.loading.sqlite_catalog import SqliteColumn, SqliteTable, read_values, scan
from coret_pg.loading.sqlite_types import Converter, as_text, choose_type, decode, family_of
from coret_pg.loading.values import TEXT


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("INT", ("integer", ())),
        ("int(11)", ("integer", (11,))),
        ("SMALLINT UNSIGNED", ("integer", ())),
        ("varchar(20)", ("text", (20,))),
        ("character varchar(3)", ("text", (3,))),
        ("NVARCHAR(MAX)", ("text", ())),
        ("varchar2(20)", ("text", (20,))),
        ("float(10,2)", ("real", (10, 2))),
        ("DECIMAL( 10 , 2 )", ("numeric", (10, 2))),
        ("number(9,0)", ("numeric", (9, 0))),
        ("DATETIME", ("timestamp", ())),
        ("timestamp", ("timestamp", ())),
        ("TIME", ("time", ())),
        ("Date", ("date", ())),
        ("BOOL", ("boolean", ())),
        ("JSON", ("json", ())),
        ("BLOB", ("blob", ())),
        ("INTERVAL", ("", ())),
        ("", ("", ())),
        ("GEOMETRY", ("", ())),
    ],
)
def test_families(declared, expected):
    assert family_of(declared) == expected


def chosen(declared, *values):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f'CREATE TABLE t (c "{declared}")' if declared else "CREATE TABLE t (c)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
        connection.text_factory = bytes
        table = SqliteTable("t", [SqliteColumn("c", declared, False, 0, False)])
        (stored,) = scan(connection, table)
        kind, remark = choose_type(declared, stored, partial(read_values, connection, "t", "c"))
    return str(kind), remark


@pytest.mark.parametrize(
    ("declared", "values", "expected"),
    [
        ("INT", (1, None, -(2**63)), "bigint"),
        ("REAL", (1, 2.5, float("inf")), "double precision"),
        ("DECIMAL(5,2)", (1.25, 999.99, -3, 0), "numeric(5, 2)"),
        ("NUMERIC", (1, 2.5), "numeric"),
        ("TEXT", ("007", ""), "text"),
        ("VARCHAR(3)", ("abc", "éèê"), "varchar(3)"),
        ("BOOLEAN", (0, 1, None), "boolean"),
        ("BOOL", ("T", "f", "Yes"), "boolean"),
        ("DATE", ("2024-01-01",), "date"),
        ("DATETIME", ("2024-01-01",), "timestamp"),
        ("DATETIME", ("2024-01-01 10:00:00", "2024-01-01T10:00"), "timestamp"),
        ("TIME", ("10:00", "10:00:01"), "time"),
        ("BLOB", (b"\0\xff",), "bytea"),
        ("JSON", ('{"a": 1}', "[]", 1), "jsonb"),
        ("", (1, 2), "bigint"),
        ("", (1, 2.5), "double precision"),
        ("", ("a", "1"), "text"),
        ("", (b"a",), "bytea"),
    ],
)
def test_values_that_fit(declared, values, expected):
    assert chosen(declared, *values) == (expected, None)


@pytest.mark.parametrize(
    ("declared", "values", "expected", "words"),
    [
        ("DATE", (1984, 1990), "bigint", "declared DATE, holds whole numbers: loaded as bigint"),
        ("DATE", ("",), "text", "declared DATE, holds other text: loaded as text"),
        ("DATE", ("2024-01-01 10:00",), "timestamp", "holds times too"),
        ("DATE", ("2023-02-30",), "text", "holds other text"),
        ("INT", (1, 2.5), "double precision", "whole numbers and floating-point numbers"),
        ("INT", (2**60 + 1, 2.5), "numeric", "loaded as numeric"),
        ("INT", (1, "x"), "text", "whole numbers and text: loaded as text"),
        ("INT", (1, ""), "text", "loaded as text"),
        ("DECIMAL(3,1)", (12.34,), "numeric", "beyond it"),
        ("DECIMAL(3,1)", (float("inf"),), "numeric", "beyond it"),
        ("VARCHAR(2)", ("abc",), "text", "longer text"),
        ("VARCHAR(2)", ("ab ",), "text", "longer text"),
        ("BOOLEAN", (0, 1, 2), "bigint", "loaded as bigint"),
        ("BLOB", ("text",), "text", "declared BLOB, holds text: loaded as text"),
        ("TEXT", (b"\xff\0",), "bytea", "binary values: loaded as bytea"),
        ("TEXT", (b"ok", "x"), "text", "loaded as text"),
        ("JSON", ("{", "1"), "text", "loaded as text"),
    ],
)
def test_values_that_do_not_fit(declared, values, expected, words):
    kind, remark = chosen(declared, *values)
    assert kind == expected
    assert words in remark


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("INT", "bigint"),
        ("DATE", "date"),
        ("DECIMAL(19,4)", "numeric(19, 4)"),
        ("VARCHAR(10)", "varchar(10)"),
        ("VARCHAR(0)", "text"),
        ("DECIMAL(2000,4)", "numeric"),
        ("", "text"),
        ("POLYGON", "text"),
    ],
)
def test_without_values_the_declared_type_counts(declared, expected):
    assert chosen(declared) == (expected, None)
    assert chosen(declared, None, None) == (expected, None)


def test_text_that_is_not_utf8():
    assert decode("é€".encode()) == ("é€", False)
    assert decode("é€".encode("cp1252")) == ("é€", True)
    assert decode(b"\x81") == ("\x81", True)
    converter = Converter("c", TEXT)
    assert [converter.convert(v) for v in (b"a", b"\xe9", 5, 0.1)] == ["a", "é", "5", "0.1"]
    assert converter.foreign == 1
    assert as_text(1e20) == "1e+20"
