"""Tidied values, without a database."""

from coret_pg.offline.near_inclusion import tidy


def test_whole_numbers_written_as_text_are_numbers():
    assert tidy(["007", "8", "+9", "-1"]) == {7, 8, 9, -1}


def test_texts_stay_texts():
    assert tidy(["7", "b"]) == {"7", "b"}
    assert tidy(["7.0"]) == {"7.0"}
    # Too long for a key, and digits of another script, which Postgres wouldn't read either.
    assert tidy(["1234567890123456789"]) == {"1234567890123456789"}
    assert tidy(["٣"]) == {"٣"}
    assert tidy([]) == frozenset()
