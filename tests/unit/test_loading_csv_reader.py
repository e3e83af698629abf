"""Delimited text: dialects, lines, and rows that can't be read."""

import csv
import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coret_pg.errors import LoadError
from coret_pg.loading.csv_reader import Dialect, find_dialect, read_rows


def write(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def rows(path):
    return [(row.line, row.fields) for row in read_rows(path, find_dialect(path)[0])]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    text = delimiter.join(["a", "b", "c"]) + "\n" + delimiter.join(['"1, 2"', '"x; y"', "z"]) + "\n"
    file = write(tmp_path / "t.csv", text)
    assert find_dialect(file)[0].delimiter == delimiter
    assert rows(file)[1] == (2, ["1, 2", "x; y", "z"])


def test_one_column_has_no_delimiter(tmp_path):
    assert rows(write(tmp_path / "t.csv", "a\n1\n\n2\n")) == [(1, ["a"]), (2, ["1"]), (4, ["2"])]


def test_tsv_is_tabbed(tmp_path):
    assert rows(write(tmp_path / "t.tsv", "a,b\tc\n1,2\t3\n"))[1] == (2, ["1,2", "3"])


@pytest.mark.parametrize(
    ("data", "encoding", "remarked"),
    [
        (b"\xef\xbb\xbfa\n\xc3\xa9\n", "utf-8-sig", False),
        ("a\né\n".encode("utf-16"), "utf-16", False),
        (b"a\n\xc3\xa9\n", "utf-8", False),
        (b"a\n\xe9\n", "cp1252", True),
        (b"a\n\xc3\xa9\n\xc3\xa9\n\xff\n", "utf-8", False),
    ],
)
def test_the_encoding(tmp_path, data, encoding, remarked):
    file = write(tmp_path / "t.csv", data)
    dialect, remark = find_dialect(file)
    assert dialect.encoding == encoding
    assert (remark is not None) is remarked
    assert rows(file)[:2] == [(1, ["a"]), (2, ["é"])]


def test_lines_are_physical_ones(tmp_path):
    file = write(tmp_path / "t.csv", 'a,b\r\n"x\r\ny",1\r\n"p""q",2\r\n')
    assert rows(file) == [(1, ["a", "b"]), (2, ["x\r\ny", "1"]), (4, ['p"q', "2"])]


def test_rows_that_cant_be_read_keep_the_others(tmp_path):
    data = b'a,b\n"x"y,1\n1,\x00\n\xc3\xa9,2\n\xff,3\n\xc3\xa9,4\n5,"open\n6,7\n'
    file = write(tmp_path / "t.csv", data)
    found = list(read_rows(file, find_dialect(file)[0]))
    assert [(row.line, row.fields) for row in found] == [
        (1, ["a", "b"]),
        (2, None),
        (3, None),
        (4, ["é", "2"]),
        (5, None),
        (6, ["é", "4"]),
        (7, None),
    ]
    reasons = [row.reason for row in found if row.fields is None]
    assert reasons[0].startswith("quoted wrongly")
    assert reasons[1].startswith("holds a NUL")
    assert reasons[2] == "holds bytes that are not utf-8"
    assert reasons[3].startswith("a quote that is never closed")


def test_a_very_long_field_is_read_and_the_limit_is_put_back(tmp_path):
    before = csv.field_size_limit()
    file = write(tmp_path / "t.csv", "a,b\n" + "x" * 500_000 + ",1\n")
    assert len(rows(file)[1][1][0]) == 500_000
    assert csv.field_size_limit() == before


def test_packed_files(tmp_path):
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress(b"a;b\n1;2\n"))
    assert rows(file) == [(1, ["a", "b"]), (2, ["1", "2"])]
    file.write_bytes(gzip.compress(b"a;b\n" * 10_000)[:-20])
    with pytest.raises(LoadError, match=r"t\.csv\.gz can't be read"):
        rows(file)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"  \n"])
def test_an_empty_file_is_an_error(tmp_path, data):
    with pytest.raises(LoadError, match="empty file"):
        find_dialect(write(tmp_path / "t.csv", data))


def test_utf16_that_is_cut(tmp_path):
    file = write(tmp_path / "t.csv", "a,b\n1,2\n".encode("utf-16")[:-1])
    with pytest.raises(LoadError, match=r"t\.csv, line .*not utf-16"):
        rows(file)


def test_a_sample_that_one_delimiter_cant_read(tmp_path):
    file = write(tmp_path / "t.csv", 'a;b\n"x,y";"p|q"\n')
    assert rows(file) == [(1, ["a", "b"]), (2, ["x,y", "p|q"])]


FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@settings(deadline=None)
@given(st.lists(st.lists(FIELDS, min_size=2, max_size=2), min_size=1, max_size=8))
def test_what_csv_writes_is_read_back(tmp_path_factory, table):
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows(table)
    file = write(tmp_path_factory.mktemp("csv") / "t.csv", buffer.getvalue())
    assert [row.fields for row in read_rows(file, Dialect("utf-8", ","))] == table
