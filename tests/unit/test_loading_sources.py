"""Which files are a source database."""

import pytest

from coret_pg.errors import LoadError
from coret_pg.loading.sources import find_sources, stem_of


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def test_a_folder_is_searched_and_its_table_files_belong_together(tmp_path):
    top = tmp_path / "shop"
    for name in ("b.sqlite", "a.csv", "c.parquet", "sub/d.tsv.gz", "sub/e.sql.gz", "sub/x/f.DB"):
        touch(top / name)
    for name in ("notes.txt", ".hidden.csv", ".git/g.csv", "__MACOSX/h.csv"):
        touch(top / name)
    found = [(s.kind, s.name, [f.name for f in s.files]) for s in find_sources(top)]
    assert found == [
        ("sqlite", "b", ["b.sqlite"]),
        ("tables", "shop", ["a.csv", "c.parquet"]),
        ("dump", "e", ["e.sql.gz"]),
        ("tables", "sub", ["d.tsv.gz"]),
        ("sqlite", "f", ["f.DB"]),
    ]


def test_stems(tmp_path):
    names = ["a.sql.gz", "b.c.csv", "d.SQLITE3", "e.tsv.gz", "f.parquet"]
    assert [stem_of(tmp_path / name) for name in names] == ["a", "b.c", "d", "e", "f"]


def test_nothing_to_load(tmp_path):
    with pytest.raises(LoadError, match="holds nothing that can be loaded"):
        find_sources(tmp_path)
    with pytest.raises(LoadError, match="does not exist"):
        find_sources(tmp_path / "missing.csv")
    with pytest.raises(LoadError, match="no kind of file"):
        find_sources(touch(tmp_path / "a.xlsx"))


def test_an_archive_of_pg_dump_is_explained(tmp_path):
    file = tmp_path / "a.dump"
    file.write_bytes(b"PGDMP\1\2")
    with pytest.raises(LoadError, match="pg_restore -f -"):
        find_sources(file)
