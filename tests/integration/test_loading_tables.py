"""CSV and Parquet files in the pool."""

import csv
import gzip
import io
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coret_pg.errors import LoadError
from coret_pg.loading import load_path


@pytest.fixture
def connection(dsn):
    with psycopg.connect(dsn) as opened:
        yield opened


def write(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def types(connection, table):
    rows = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attnum > 0 AND attrelid = %s::regclass",
        (table,),
    )
    return dict(rows.fetchall())


def test_types_are_those_of_all_rows(connection, tmp_path):
    file = write(
        tmp_path / "t.csv",
        "i,n,zip,d,ts,b,s,none\n"
        "1,1,01234,2024-01-01,2024-01-01,true,x,\n"
        "-2,2.50,1,2024-02-29,2024-01-01T10:00:00,F,,\n",
    )
    (report,) = load_path(connection, file)
    assert report.tables == [("t", 2, 0)]
    assert report.remarks == []
    assert types(connection, "t.t") == {
        "i": "bigint",
        "n": "numeric",
        "zip": "text",
        "d": "date",
        "ts": "timestamp without time zone",
        "b": "boolean",
        "s": "text",
        "none": "text",
    }
    last = connection.execute("SELECT * FROM t.t WHERE i = -2").fetchone()
    assert last == (
        *(-2, Decimal("2.50"), "1", date(2024, 2, 29), datetime(2024, 1, 1, 10)),
        *(False, None, None),
    )


def test_bad_rows_are_rejected_with_their_line_and_the_others_loaded(connection, tmp_path):
    file = write(
        tmp_path / "t.csv",
        b'a,b\n"two\nlines",1\nshort\n3,\x00\n\xc3\xa9,4\n\xff,5\n6,6,6\n7,7\n',
    )
    (report,) = load_path(connection, file)
    assert report.tables == [("t", 3, 4)]
    assert [(r.line, r.reason) for r in report.rejects] == [
        (4, "has 1 fields, the header has 2"),
        (5, "holds a NUL, which Postgres can't store"),
        (7, "holds bytes that are not utf-8"),
        (8, "has 3 fields, the header has 2"),
    ]
    assert report.rejects[2].text == "\\xff,5"
    assert types(connection, "t.t") == {"a": "text", "b": "bigint"}
    with pytest.raises(LoadError, match=r"4 rows .*t\.csv:4: has 1 fields"):
        load_path(connection, file, schema="x", strict=True)
    assert not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'x'").fetchall()


def test_listed_rejects_are_limited(connection, tmp_path):
    file = write(tmp_path / "t.csv", "a,b\n" + "1\n" * 1_500 + "1," + "x" * 900 + ",\n")
    (report,) = load_path(connection, file)
    assert report.tables == [("t", 0, 1_501)]
    assert len(report.rejects) == 1_000
    assert "1501 rows were rejected, the first 1000 are listed" in report.remarks
    with pytest.raises(LoadError, match="1481 more"):
        load_path(connection, file, schema="u", strict=True)


def test_long_texts_are_cut_in_the_report(connection, tmp_path):
    file = write(tmp_path / "t.csv", "a,b\n" + "x" * 900 + "\n")
    (report,) = load_path(connection, file)
    assert report.rejects[0].text == "x" * 500


def test_headers_get_names(connection, tmp_path):
    file = write(tmp_path / "t.csv", "a,,a, B ,ctid\n1,2,3,4,5\n")
    (report,) = load_path(connection, file)
    assert list(types(connection, "t.t")) == ["a", "column_2", "a_2", " B ", "ctid_2"]
    assert len(report.remarks) == 3


def test_only_a_header_and_nothing_at_all(connection, tmp_path):
    (report,) = load_path(connection, write(tmp_path / "h.csv", "a,b\n"))
    assert report.tables == [("h", 0, 0)]
    assert types(connection, "h.h") == {"a": "text", "b": "text"}
    with pytest.raises(LoadError, match="empty file"):
        load_path(connection, write(tmp_path / "e.csv", ""))


def test_a_file_that_is_not_utf8(connection, tmp_path):
    file = write(tmp_path / "t.csv", "a;b\ncafé;1\n", "cp1252")
    (report,) = load_path(connection, file)
    assert report.remarks == ["t.csv: not UTF-8: read as Windows-1252"]
    assert connection.execute("SELECT * FROM t.t").fetchone() == ("café", 1)


def test_a_folder_of_files_is_one_schema(connection, tmp_path):
    folder = tmp_path / "Shop Data"
    folder.mkdir()
    write(folder / "a.tsv", "x\ty\n1\t2\n")
    (folder / "b.csv.gz").write_bytes(gzip.compress(b"x|y\n1|2\n"))
    (report,) = load_path(connection, folder)
    assert (report.schema, report.file) == ("Shop Data", folder)
    assert report.tables == [("a", 1, 0), ("b", 1, 0)]
    assert connection.execute('SELECT x, y FROM "Shop Data".b').fetchone() == (1, 2)
    write(folder / "b.csv", "x\n1\n")
    with pytest.raises(LoadError, match="would both be named 'b'"):
        load_path(connection, folder, replace=True)


FIELD = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    st.integers().map(str),
    st.sampled_from(["007", "1.50", "t", "2024-01-01", "2024-01-01 10:00", "1e-05", "+1", ""]),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(FIELD, FIELD), max_size=6))
def test_no_value_is_changed(connection, tmp_path_factory, rows):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    writer.writerows([("n", "v", "w"), *((i, *row) for i, row in enumerate(rows))])
    file = write(tmp_path_factory.mktemp("csv") / "sample.csv", buffer.getvalue())
    load_path(connection, file, replace=True)
    kinds = types(connection, "sample.sample")
    found = connection.execute(
        "SELECT v::text, w::text, v, w FROM sample.sample ORDER BY n"
    ).fetchall()
    assert len(found) == len(rows)
    for (v_text, w_text, v, w), row in zip(found, rows, strict=True):
        for text, value, wanted, name in ((v_text, v, row[0], "v"), (w_text, w, row[1], "w")):
            kind = kinds[name]
            if not wanted:
                assert value is None
            elif kind == "numeric":
                assert value == Decimal(wanted)
            elif kind.startswith("timestamp"):
                assert value == datetime.fromisoformat(wanted)
            elif kind == "boolean":
                assert value is (wanted.lower() in {"t", "true"})
            else:
                assert text == wanted


def test_parquet_types(connection, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    moment = datetime(2024, 2, 29, 10, 0, 0, 5, tzinfo=UTC)
    columns = {
        "i8": (pa.int8(), -5, -5),
        "u64": (pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
        "f32": (pa.float32(), 0.5, 0.5),
        "f64": (pa.float64(), 0.1, 0.1),
        "dec": (pa.decimal128(10, 2), Decimal("1.50"), Decimal("1.50")),
        "day": (pa.date32(), date(2024, 2, 29), date(2024, 2, 29)),
        "ms": (pa.timestamp("ms"), datetime(2024, 1, 1), datetime(2024, 1, 1)),
        "zone": (pa.timestamp("us", "America/New_York"), moment, moment),
        "ns": (
            pa.timestamp("ns"),
            1_700_000_000_000_001_000,
            datetime(2023, 11, 14, 22, 13, 20, 1),
        ),
        "fine": (pa.timestamp("ns"), 1_700_000_000_000_000_001, "2023-11-14 22:13:20.000000001"),
        "at": (pa.time64("us"), time(10, 30), time(10, 30)),
        "raw": (pa.binary(), b"\0\xff", b"\0\xff"),
        "word": (pa.dictionary(pa.int8(), pa.string()), "x", "x"),
        "list": (pa.list_(pa.float64()), [1.0, float("nan")], [1, "NaN"]),
        "struct": (pa.struct([("a", pa.int64()), ("b", pa.binary())]), {"a": 1, "b": b"x"}, None),
        "map": (pa.map_(pa.string(), pa.int64()), [("k", 1)], {"k": 1}),
        "yes": (pa.bool_(), True, True),
        "none": (pa.null(), None, None),
        "took": (pa.duration("s"), 90, 90),
    }
    columns["struct"] = (*columns["struct"][:2], {"a": 1, "b": "eA=="})
    arrays = [pa.array([value, None], type=kind) for kind, value, _ in columns.values()]
    ids = pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([UUID(int=7).bytes, None], type=pa.binary(16))
    )
    table = pa.table([*arrays, ids], names=[*columns, "id"])
    file = tmp_path / "p.parquet"
    parquet.write_table(table, file, row_group_size=1)
    (report,) = load_path(connection, file)
    assert report.tables == [("p", 2, 0)]
    row = connection.execute("SELECT * FROM p.p WHERE i8 IS NOT NULL").fetchone()
    expected = [wanted for _, _, wanted in columns.values()]
    assert list(row) == [*expected, UUID(int=7)]
    kinds = types(connection, "p.p")
    assert kinds["u64"] == "numeric(20,0)"
    assert kinds["dec"] == "numeric(10,2)"
    assert kinds["zone"] == "timestamp with time zone"
    assert kinds["map"] == "jsonb"
    assert len(report.remarks) == 2


def test_parquet_rows_that_cant_be_stored(connection, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "a": ["x\0", "y", "z"],
            "b": [["\0"], ["w"], ["v"]],
            "t": pa.array([0, 10**18, 0], pa.timestamp("us")),
        }
    )
    parquet.write_table(table, tmp_path / "p.parquet")
    (report,) = load_path(connection, tmp_path / "p.parquet")
    assert report.tables == [("p", 1, 2)]
    assert [reject.line for reject in report.rejects] == [1, 2]


def test_damaged_parquet(connection, tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(LoadError, match=r"p\.parquet can't be read"):
        load_path(connection, write(tmp_path / "p.parquet", b"PAR1 nonsense PAR1"))


def test_parquet_without_pyarrow(connection, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(LoadError, match=r"coret-pg\[parquet\]"):
        load_path(connection, write(tmp_path / "p.parquet", b"PAR1"))


def test_what_the_database_refuses_is_told_with_its_place(connection, tmp_path):
    titles = ",".join(f"c{i}" for i in range(1_500))
    wide = write(tmp_path / "wide.csv", f"{titles}\n{','.join(['x' * 30] * 1_500)}\n")
    with pytest.raises(LoadError, match=r"wide\.csv: .* too big.*\(COPY wide, line 2\)"):
        load_path(connection, wide)
    write(wide, ",".join(f"c{i}" for i in range(1_700)) + "\n")
    with pytest.raises(LoadError, match="at most 1600 columns"):
        load_path(connection, wide)
