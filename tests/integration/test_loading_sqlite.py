"""SQLite files in the pool: values, types, names, keys, and files left untouched."""

import math
import os
import sqlite3
from contextlib import closing
from datetime import date, datetime, time
from decimal import Decimal

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from coret_pg.errors import LoadError
from coret_pg.loading import load_path


@pytest.fixture
def connection(dsn):
    with psycopg.connect(dsn) as opened:
        yield opened


def make(path, script, *inserts):
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
        for statement, rows in inserts:
            database.executemany(statement, rows)
        database.commit()
    return path


def types(connection, schema):
    return dict(
        connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "JOIN pg_class ON pg_class.oid = attrelid WHERE attnum > 0 "
            "AND relkind = 'r' AND relnamespace = %s::regnamespace",
            (sql.Identifier(schema).as_string(),),
        ).fetchall()
    )


def constraints(connection, schema):
    rows = connection.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype <> 'n' "
        "AND connamespace = %s::regnamespace ORDER BY 1",
        (schema,),
    )
    return [row[0] for row in rows]


def test_every_type_keeps_its_values(connection, tmp_path):
    row = (
        *(-(2**63), 0.1, 19.99, "007", "abc", "T", "2024-02-29", "2024-02-29 10:00:00.5"),
        *("10:30", b"\0\xff", '{"a": [1, 1.50]}', math.inf, None),
    )
    file = make(
        tmp_path / "kinds.sqlite",
        "CREATE TABLE t (i INT, r REAL, n DECIMAL(10,2), s TEXT, v VARCHAR(3), b BOOLEAN, d DATE,"
        " ts DATETIME, tm TIME, x BLOB, j JSON, inf DOUBLE, nil)",
        ("INSERT INTO t VALUES (" + ",".join("?" * len(row)) + ")", [row, (None,) * len(row)]),
    )
    (report,) = load_path(connection, file)
    assert (report.file, report.schema, report.remarks) == (file, "kinds", [])
    assert report.tables == [("t", 2, 0)]
    assert report.rows == 2
    assert types(connection, "kinds") == {
        "i": "bigint",
        "r": "double precision",
        "n": "numeric(10,2)",
        "s": "text",
        "v": "character varying(3)",
        "b": "boolean",
        "d": "date",
        "ts": "timestamp without time zone",
        "tm": "time without time zone",
        "x": "bytea",
        "j": "jsonb",
        "inf": "double precision",
        "nil": "text",
    }
    assert connection.execute("SELECT * FROM kinds.t WHERE i IS NOT NULL").fetchone() == (
        *(-(2**63), 0.1, Decimal("19.99"), "007", "abc", True, date(2024, 2, 29)),
        datetime(2024, 2, 29, 10, 0, 0, 500_000),
        *(time(10, 30), b"\0\xff", {"a": [1, 1.5]}, math.inf, None),
    )


def test_surprises_are_remarked_on(connection, tmp_path):
    file = make(
        tmp_path / "s.db",
        "CREATE TABLE singer (born DATE, age INT, note TEXT);"
        "INSERT INTO singer VALUES (1984, '007x', CAST(x'63616665e9' AS TEXT)), (1990, 7, '')",
    )
    (report,) = load_path(connection, file)
    assert report.remarks == [
        "singer.born: declared DATE, holds whole numbers: loaded as bigint",
        "singer.age: declared INT, holds whole numbers and text: loaded as text",
        "singer.note: 1 values are not UTF-8: read as Windows-1252",
    ]
    assert connection.execute("SELECT * FROM s.singer").fetchall() == [
        (1984, "007x", "cafeé"),
        (1990, "7", ""),
    ]


def test_a_nul_in_a_text_rejects_its_row(connection, tmp_path):
    file = make(
        tmp_path / "n.sqlite",
        "CREATE TABLE t (a INT, b TEXT)",
        ("INSERT INTO t VALUES (?, ?)", [(1, "x\0y"), (2, "z")]),
    )
    (report,) = load_path(connection, file)
    assert report.tables == [("t", 1, 1)]
    (reject,) = report.rejects
    assert (reject.file, reject.line, reject.text) == (file, 1, "1, x\\x00y")
    assert "NUL" in reject.reason
    with pytest.raises(LoadError, match="NUL"):
        load_path(connection, file, schema="strictly", strict=True)
    assert not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'strictly'").fetchall()


def test_names_are_kept(connection, tmp_path):
    long = "ä" * 40
    file = make(
        tmp_path / "Odd ?#%20 Schema.x.sqlite",
        f'CREATE TABLE "select" ("group" INT, " a.b " INT, "Ünïcode" INT, "q""x" INT, xmin INT);'
        f'CREATE TABLE "{long}" ("{long}" INT); CREATE TABLE "CamelCase" (a INT);'
        'INSERT INTO "select" VALUES (1, 2, 3, 4, 5)',
    )
    (report,) = load_path(connection, file)
    assert report.schema == "Odd ?#%20 Schema.x"
    names = [table.name for table in report.tables]
    assert names[0] == "select"
    assert names[2] == "CamelCase"
    assert names[1].startswith("ä" * 27 + "_")
    assert len(report.remarks) == 3
    query = sql.SQL('SELECT "group", " a.b ", "Ünïcode", "q""x", xmin_2 FROM {}')
    table = sql.Identifier(report.schema, "select")
    assert connection.execute(query.format(table)).fetchone() == (1, 2, 3, 4, 5)


KEYS = """
CREATE TABLE parent (id INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE, a INT, b INT,
  UNIQUE (a, b));
CREATE TABLE child (x INT, y INT, parent_ID INT REFERENCES Parent,
  code TEXT REFERENCES parent(code),
  broken INT REFERENCES parent(id), gone INT REFERENCES nowhere(id),
  PRIMARY KEY (y, x), FOREIGN KEY (x, y) REFERENCES parent (a, b)) WITHOUT ROWID;
CREATE TABLE loose (k TEXT PRIMARY KEY, need TEXT NOT NULL);
CREATE UNIQUE INDEX named ON parent (a, code);
CREATE UNIQUE INDEX partly ON parent (a) WHERE a > 1;
CREATE UNIQUE INDEX computed ON parent (lower(code));
INSERT INTO parent VALUES (1, 'one', 1, 2), (2, 'two', 3, 4);
INSERT INTO child VALUES (1, 2, 1, 'one', 99, 5);
INSERT INTO loose VALUES (NULL, 'x'), ('a', 'y');
"""


def test_keys_are_created_where_the_data_satisfies_them(connection, tmp_path):
    (report,) = load_path(connection, make(tmp_path / "keys.sqlite", KEYS))
    assert constraints(connection, "keys") == [
        'FOREIGN KEY ("parent_ID") REFERENCES keys.parent(id)',
        "FOREIGN KEY (code) REFERENCES keys.parent(code)",
        "FOREIGN KEY (x, y) REFERENCES keys.parent(a, b)",
        "PRIMARY KEY (id)",
        "PRIMARY KEY (y, x)",
        "UNIQUE (a, b)",
        "UNIQUE (a, code)",
        "UNIQUE (code)",
    ]
    assert len(report.remarks) == 3
    assert any("loose: primary key (k) left out" in remark for remark in report.remarks)
    assert any("(broken) to parent left out" in remark for remark in report.remarks)
    assert any("nowhere left out: there is no such table" in r for r in report.remarks)
    required = connection.execute(
        "SELECT attrelid::regclass::text, attname::text FROM pg_attribute WHERE attnotnull "
        "AND attnum > 0 AND attrelid IN ('keys.parent'::regclass, 'keys.loose'::regclass)"
    ).fetchall()
    assert sorted(required) == [
        ("keys.loose", "need"),
        ("keys.parent", "code"),
        ("keys.parent", "id"),
    ]


def test_a_foreign_key_to_columns_that_are_not_there(connection, tmp_path):
    file = make(
        tmp_path / "f.sqlite",
        "CREATE TABLE p (id INT, n INT);"
        "CREATE TABLE c (a INT REFERENCES p(zz), b INT REFERENCES p, d INT REFERENCES p(n))",
    )
    (report,) = load_path(connection, file)
    assert constraints(connection, "f") == []
    assert sum("its columns are not there" in remark for remark in report.remarks) == 2
    assert sum("no unique constraint" in remark for remark in report.remarks) == 1


def test_a_file_without_tables(connection, tmp_path):
    file = make(tmp_path / "e.sqlite", "CREATE TABLE t (a INT); DROP TABLE t")
    (report,) = load_path(connection, file)
    assert (report.tables, report.remarks) == ([], ["the file holds no table"])


def test_without_keys_there_are_none(connection, tmp_path):
    (report,) = load_path(connection, make(tmp_path / "keys.sqlite", KEYS), keys=False)
    assert constraints(connection, "keys") == []
    assert report.remarks == []
    assert [table.rows for table in report.tables] == [2, 1, 2]


def test_what_is_no_table_is_left_out(connection, tmp_path):
    file = make(
        tmp_path / "v.sqlite",
        "CREATE TABLE t (a INT, twice INT GENERATED ALWAYS AS (a * 2) VIRTUAL);"
        "INSERT INTO t VALUES (4); CREATE VIEW look AS SELECT * FROM t;"
        "CREATE VIRTUAL TABLE words USING fts5(x); INSERT INTO words VALUES ('hello')",
    )
    (report,) = load_path(connection, file)
    assert report.tables == [("t", 1, 0)]
    assert connection.execute("SELECT * FROM v.t").fetchone() == (4, 8)
    assert "view look left out" in report.remarks
    assert "virtual table words left out" in report.remarks
    assert "shadow table words_content left out" in report.remarks
    assert "t.twice: generated: its values are loaded" in report.remarks


def test_a_table_named_like_a_type_shadows_none(connection, tmp_path):
    file = make(
        tmp_path / "d.sqlite",
        'CREATE TABLE "date" (a INT); CREATE TABLE "text" (d DATE, t TEXT);'
        "INSERT INTO \"text\" VALUES ('2024-01-01', 'x')",
    )
    load_path(connection, file)
    assert connection.execute('SELECT * FROM d."text"').fetchone() == (date(2024, 1, 1), "x")


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "in use"])
def test_a_file_in_wal_mode_is_read_and_nothing_is_written_beside_it(connection, tmp_path, clean):
    file = tmp_path / "w.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t (a INT)")
        database.execute("INSERT INTO t VALUES (1)")
        database.commit()
        if clean:
            database.close()
        before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
        (report,) = load_path(connection, file)
        assert {n: (tmp_path / n).read_bytes() for n in os.listdir(tmp_path)} == before
    assert report.tables == [("t", 1, 0)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"something else entirely", "no SQLite database, or an encrypted one"),
        (b"SQLite format 3\0" + b"\x10\0\1\1\0" + b"\xff" * 3_000, "can't be read"),
    ],
)
def test_a_file_that_is_no_database(connection, tmp_path, data, message):
    file = tmp_path / "bad.db"
    file.write_bytes(data)
    with pytest.raises(LoadError, match=message) as caught:
        load_path(connection, file)
    assert str(file) in str(caught.value)
    assert not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'bad'").fetchall()


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    st.sampled_from(["", "007", "7", "1.50", "t", "2024-01-01", "10:00", "{}"]),
    st.binary(max_size=4),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    declared=st.sampled_from(
        ["", "INT", "TEXT", "VARCHAR(3)", "REAL", "DECIMAL(6,2)", "DATE", "BOOLEAN", "BLOB", "JSON"]
    ),
    values=st.lists(VALUES, min_size=1, max_size=6),
)
def test_no_value_is_changed(connection, tmp_path_factory, declared, values):
    file = tmp_path_factory.mktemp("sqlite") / "sample.sqlite"
    make(
        file,
        f"CREATE TABLE t (n INT, v {declared})",
        ("INSERT INTO t VALUES (?, ?)", enumerate(values)),
    )
    with closing(sqlite3.connect(file)) as database:
        stored = [row[0] for row in database.execute("SELECT v FROM t ORDER BY n")]
    load_path(connection, file, replace=True)
    kind = types(connection, "sample")["v"]
    rows = connection.execute("SELECT v FROM sample.t ORDER BY n").fetchall()
    assert len(rows) == len(stored)
    for (found,), value in zip(rows, stored, strict=True):
        assert unchanged(found, value, kind), (found, value, kind)


def unchanged(found, value, kind):
    if value is None or found is None:
        return found is value
    if kind == "boolean":
        return found == (str(value).lower() in {"1", "t", "true", "yes", "y"})
    if kind == "bytea":
        return found == (value if isinstance(value, bytes) else str(value).encode())
    if kind in {"text", "character varying(3)"}:
        return found == (value.decode() if isinstance(value, bytes) else str(value))
    if kind.startswith("numeric"):
        return found == Decimal(str(value))
    if kind == "jsonb":
        return found is not None
    return str(found) == str(value) if isinstance(value, str) else found == value
