"""Tell what a text value is, so that storing it under a type never changes it."""

import json
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any, LiteralString, NamedTuple

from psycopg import sql

INT8_MIN, INT8_MAX = -(2**63), 2**63 - 1

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
# An exponent needs its sign: 1e-05 is a number, 12E5 may be a product code.
_DECIMAL = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-][0-9]{1,3})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?")
_DIGITS_LIMIT = 1_000
_BOOLEANS = frozenset({"true", "false", "t", "f"})


class SqlType(NamedTuple):
    """A type of Postgres and its modifiers, such as numeric(10, 2)."""

    base: LiteralString
    modifiers: tuple[int, ...] = ()

    def sql(self) -> sql.Composable:
        """Return the type as SQL."""
        if not self.modifiers:
            return sql.SQL(self.base)
        numbers = sql.SQL(", ").join(sql.Literal(number) for number in self.modifiers)
        return sql.SQL(self.base) + sql.SQL("({})").format(numbers)

    def __str__(self) -> str:
        if not self.modifiers:
            return self.base
        return f"{self.base}({', '.join(map(str, self.modifiers))})"


BIGINT = SqlType("bigint")
DOUBLE = SqlType("double precision")
NUMERIC = SqlType("numeric")
TEXT = SqlType("text")
BYTEA = SqlType("bytea")
BOOLEAN = SqlType("boolean")
DATE = SqlType("date")
TIMESTAMP = SqlType("timestamp")
TIME = SqlType("time")
JSONB = SqlType("jsonb")


def is_bigint(text: str) -> bool:
    """Tell whether the text is an int8 as Postgres would print it: no 007, no +7, no -0."""
    return _INTEGER.fullmatch(text) is not None and INT8_MIN <= int(text) <= INT8_MAX


def is_decimal(text: str) -> bool:
    """Tell whether the text is a number without leading zeros or a plus sign."""
    return len(text) <= _DIGITS_LIMIT and _DECIMAL.fullmatch(text) is not None


@lru_cache(maxsize=8_192)
def is_date(text: str) -> bool:
    """Tell whether the text is a day of the calendar, written yyyy-mm-dd."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    try:
        date(*(int(part) for part in match.groups()))
    except ValueError:  # such as 2023-02-30
        return False
    return True


def is_time(text: str) -> bool:
    """Tell whether the text is hh:mm, hh:mm:ss or with up to six digits of a second."""
    return _TIME.fullmatch(text) is not None


def is_timestamp(text: str) -> bool:
    """Tell whether the text is an ISO day, alone or with a time, and without an offset."""
    return is_date(text[:10]) and (
        len(text) == 10 or (text[10] in " T" and _TIME.fullmatch(text, 11) is not None)
    )


def is_boolean(text: str) -> bool:
    """Tell whether the text is true, false, t or f, in any case of letters."""
    return text.lower() in _BOOLEANS


def is_json(text: str) -> bool:
    """Tell whether jsonb can hold the text: valid, no doubled keys, no NUL, no lone surrogate."""
    try:
        value = json.loads(
            text,
            parse_constant=_refuse,
            object_pairs_hook=_without_doubles,
            parse_float=_small_float,
            parse_int=str,
        )
        _storable(value).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(text: str) -> None:
    raise ValueError(text)


def _small_float(text: str) -> str:
    if not is_decimal(re.sub(r"[eE](?=[0-9])", "e+", text)):
        raise ValueError(text)
    return text


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _storable(value: Any) -> str:
    plain = json.dumps(value, ensure_ascii=False)
    if "\\u0000" in plain:
        raise ValueError("NUL")
    return plain


_CHAINS: tuple[tuple[tuple[SqlType, Callable[[str], bool]], ...], ...] = (
    ((BIGINT, is_bigint), (NUMERIC, is_decimal)),
    ((DATE, is_date), (TIMESTAMP, is_timestamp)),
    ((BOOLEAN, is_boolean),),
)


class Guess:
    """The narrowest type that holds every text seen so far unchanged."""

    __slots__ = ("_left", "_seen")

    def __init__(self) -> None:
        self._seen = False
        self._left: tuple[tuple[SqlType, Callable[[str], bool]], ...] = ()

    def see(self, text: str) -> None:
        """Take one value into account; an empty text must not be passed: it is NULL."""
        if not self._seen:
            self._seen = True
            fits = (chain[i:] for chain in _CHAINS for i in range(len(chain)) if chain[i][1](text))
            self._left = next(fits, ())
        elif self._left and not self._left[0][1](text):
            # What held in a narrow type holds in the wider ones of its chain.
            while self._left and not self._left[0][1](text):
                self._left = self._left[1:]

    @property
    def type(self) -> SqlType:
        """Return the type; text where nothing was seen."""
        return self._left[0][0] if self._left else TEXT
