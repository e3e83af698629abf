"""What a text is taken for: nothing may change by being stored under a type."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coret_pg.loading.values import (
    Guess,
    SqlType,
    is_bigint,
    is_boolean,
    is_date,
    is_decimal,
    is_json,
    is_time,
    is_timestamp,
)


@pytest.mark.parametrize("text", ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"])
def test_whole_numbers(text):
    assert is_bigint(text)


@pytest.mark.parametrize(
    "text",
    ["", "007", "+7", "-0", " 7", "7 ", "7.0", "1e3", "9223372036854775808", "٧", "1_000", "0x10"],
)
def test_not_whole_numbers(text):
    assert not is_bigint(text)


@pytest.mark.parametrize("text", ["0.5", "-1.50", ".5", "1e-05", "1.5e+20", "9223372036854775808"])
def test_decimals(text):
    assert is_decimal(text)


@pytest.mark.parametrize("text", ["00.5", "+1.5", "5.", "12E5", "NaN", "inf", "1,5", "1.5 ", "٣.٥"])
def test_not_decimals(text):
    assert not is_decimal(text)


@pytest.mark.parametrize(
    ("text", "check", "holds"),
    [
        ("2024-02-29", is_date, True),
        ("2023-02-29", is_date, False),
        ("0000-01-01", is_date, False),
        ("20240229", is_date, False),
        ("2024-2-9", is_date, False),
        ("2024-01-01", is_timestamp, True),
        ("2024-01-01 10:00", is_timestamp, True),
        ("2024-01-01T10:00:00.123456", is_timestamp, True),
        ("2024-01-01 10:00:00.1234567", is_timestamp, False),
        ("2024-01-01 24:00:00", is_timestamp, False),
        ("2024-01-01 10:00:00Z", is_timestamp, False),
        ("2024-01-01 10:00:00+02", is_timestamp, False),
        ("10:00", is_time, True),
        ("23:59:59.5", is_time, True),
        ("24:00", is_time, False),
        ("9:00", is_time, False),
        ("True", is_boolean, True),
        ("f", is_boolean, True),
        ("yes", is_boolean, False),
        ("1", is_boolean, False),
    ],
)
def test_dates_times_and_booleans(text, check, holds):
    assert check(text) is holds


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null, true]}', '"x"', "17", "1e400", " [] "])
def test_json(text):
    assert is_json(text)


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", "NaN", '{"a": 1, "a": 2}', '"\\u0000"', '"\\ud800"', "[" * 100_000],
)
def test_not_json(text):
    assert not is_json(text)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], "text"),
        (["1", "-2"], "bigint"),
        (["1", "2.5"], "numeric"),
        (["2.5", "1"], "numeric"),
        (["1", "007"], "text"),
        (["1", "9223372036854775808"], "numeric"),
        (["2024-01-01", "2024-01-02"], "date"),
        (["2024-01-01", "2024-01-02 10:00"], "timestamp"),
        (["2024-01-02 10:00", "2024-01-01"], "timestamp"),
        (["t", "False"], "boolean"),
        (["true", "1"], "text"),
        (["2024-01-01", "5"], "text"),
        (["x", "1", "2"], "text"),
    ],
)
def test_the_narrowest_type_of_all_values(texts, expected):
    guess = Guess()
    for text in texts:
        guess.see(text)
    assert str(guess.type) == expected


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(), st.integers().map(str), st.decimals().map(str)), max_size=6))
def test_numbers_are_only_those_that_stay_the_same(texts):
    guess = Guess()
    for text in texts:
        guess.see(text)
    if guess.type.base == "bigint":
        assert [str(int(text)) for text in texts] == texts
    elif guess.type.base == "numeric":
        assert all(Decimal(text).is_finite() for text in texts)


@settings(deadline=None)
@given(st.dates(), st.datetimes())
def test_what_python_prints_is_recognised(day, moment):
    assert is_date(day.isoformat())
    assert date.fromisoformat(day.isoformat()) == day
    assert is_timestamp(moment.isoformat())
    assert datetime.fromisoformat(moment.isoformat(" ")) == moment


def test_a_type_prints_its_modifiers():
    assert str(SqlType("numeric", (10, 2))) == "numeric(10, 2)"
    assert SqlType("numeric", (10, 2)).sql().as_string() == "numeric(10, 2)"
