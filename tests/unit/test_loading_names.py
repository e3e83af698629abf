"""Names are kept, or changed by a stated rule and remarked on."""

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coret_pg.errors import InputError, LoadError
from coret_pg.loading.names import NameBook, checked_schema, shortened


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=120))
def test_a_shortened_name_fits_and_differs_only_where_it_must(name):
    short = shortened(name)
    assert len(short.encode()) <= 63
    if len(name.encode()) <= 63:
        assert short == name
    else:
        assert short.endswith("_" + sha256(name.encode()).hexdigest()[:8])


def test_the_cut_is_at_a_character_border():
    name = "é" * 40
    assert shortened(name).rpartition("_")[0] == "é" * 27
    assert shortened("a" + name).rpartition("_")[0] == "a" + "é" * 26


@pytest.mark.parametrize("name", ["public", "Public", "coret", "information_schema", "pg_toast"])
def test_reserved_schemas_are_refused(name):
    with pytest.raises(InputError, match="not free for loading"):
        checked_schema(name)


@pytest.mark.parametrize("name", ["", "a\0b", "a\udc80"])
def test_impossible_schemas_are_refused(name):
    with pytest.raises(InputError, match="can't be the name"):
        checked_schema(name)


@pytest.mark.parametrize("name", ["select", " Ä.b ", 'a"b', "cre_Doc", "pgx"])
def test_odd_schemas_are_kept(name):
    assert checked_schema(name) == name


def test_doubles_and_empty_names_are_numbered_with_a_remark():
    remarks = []
    book = NameBook("t.csv: column", remarks)
    names = ["a", "", "a", "a_2", "a"]
    used = [
        book.add(name, empty=f"column_{i}", number_doubles=True) for i, name in enumerate(names, 1)
    ]
    assert used == ["a", "column_2", "a_2", "a_2_2", "a_3"]
    assert remarks[0] == "t.csv: column: '' is named 'column_2'"
    assert len(remarks) == 4


def test_a_name_of_a_system_column_is_changed():
    remarks = []
    book = NameBook("t: column", remarks, taken=frozenset({"xmin"}))
    assert book.add("xmin", empty="column_1") == "xmin_2"
    assert remarks == ["t: column: 'xmin' is named 'xmin_2'"]


def test_a_collision_is_detected():
    long = "x" * 70
    book = NameBook("table", [])
    book.add(shortened(long), empty="table_1")
    with pytest.raises(LoadError, match="would both be named"):
        book.add(long, empty="table_2")


def test_a_name_with_a_nul_is_refused():
    with pytest.raises(LoadError, match="can't be stored"):
        NameBook("table", []).add("a\0", empty="table_1")
