"""Choose a column's type from its declared type and from what SQLite stored in it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from coret_pg.loading.report import RowRefused
from coret_pg.loading.values import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    JSONB,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    SqlType,
    is_bigint,
    is_date,
    is_decimal,
    is_json,
    is_time,
    is_timestamp,
)

Family = Literal[
    "integer", "real", "numeric", "text", "boolean", "date", "timestamp", "time", "json", "blob", ""
]
# Reads the column's values that are not NULL; with a storage class, only those of that class.
Values = Callable[[str | None], Iterator[Any]]

_MODIFIERS = re.compile(r"\(\s*([0-9]+)\s*(?:,\s*([0-9]+)\s*)?\)")
_EXACT_FLOAT = 2**53
_VARCHAR_LIMIT = 10_485_760
_NUMERIC_LIMIT = 1_000
_TRUE = frozenset({"1", "t", "true", "yes", "y"})
_FALSE = frozenset({"0", "f", "false", "no", "n"})
# Declared words of a family, the first that occurs in the type wins (as in SQLite itself).
_FAMILIES: tuple[tuple[Family, str], ...] = (
    ("boolean", r"^BOOL"),
    ("timestamp", r"^(SMALL)?DATETIME|^TIMESTAMP"),
    ("date", r"^DATE$"),
    ("time", r"^TIME\b"),
    ("json", r"^JSONB?$"),
    ("integer", r"INT(?!ERVAL)|SERIAL|^YEAR$"),
    ("text", r"CHAR|CLOB|TEXT"),
    ("blob", r"BLOB|BINARY|BYTEA|^IMAGE$"),
    ("real", r"REAL|FLOA|DOUB"),
    ("numeric", r"^DEC|NUMERIC|^NUMBER|MONEY"),
)
_WHEN_DECLARED: dict[Family, SqlType] = {
    "integer": BIGINT,
    "real": DOUBLE,
    "numeric": NUMERIC,
    "text": TEXT,
    "boolean": BOOLEAN,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "time": TIME,
    "json": JSONB,
    "blob": BYTEA,
    "": TEXT,
}
_TEXT_CHECKS: dict[Family, Callable[[str], bool]] = {
    "date": is_date,
    "timestamp": is_timestamp,
    "time": is_time,
    "json": is_json,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """What one scan found in a column: counts by storage class, and extremes."""

    rows: int
    integers: int
    reals: int
    texts: int
    blobs: int
    max_bytes: int
    min_integer: int
    max_integer: int

    @property
    def values(self) -> int:
        """Return the number of values that are not NULL."""
        return self.integers + self.reals + self.texts + self.blobs

    def describe(self) -> str:
        """Return in words what is stored."""
        kinds = (
            (self.integers, "whole numbers"),
            (self.reals, "floating-point numbers"),
            (self.texts, "text"),
            (self.blobs, "binary values"),
        )
        return " and ".join(words for count, words in kinds if count)


def decode(value: bytes) -> tuple[str, bool]:
    """Return the text, and whether it was not UTF-8 (then it is read as Windows-1252)."""
    try:
        return value.decode(), False
    except UnicodeDecodeError:
        # The five bytes that Windows-1252 leaves undefined keep their number.
        return "".join(_CP1252[byte] for byte in value), True


def _cp1252(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_CP1252 = [_cp1252(byte) for byte in range(256)]


def as_text(value: Any) -> str:
    """Return a value of any storage class as text; numbers as Python prints them."""
    return decode(value)[0] if isinstance(value, bytes) else str(value)


def family_of(declared: str) -> tuple[Family, tuple[int, ...]]:
    """Return the family of a declared type and its numbers, such as (10, 2)."""
    words = declared.partition("(")[0].strip().upper()
    match = _MODIFIERS.search(declared)
    modifiers = tuple(int(n) for n in match.groups() if n is not None) if match else ()
    for family, pattern in _FAMILIES:
        if re.search(pattern, words):
            return family, modifiers
    return "", modifiers


def choose_type(declared: str, stored: Stored, values: Values) -> tuple[SqlType, str | None]:
    """Return the type that holds every stored value unchanged, and a remark on a surprise."""
    family, modifiers = family_of(declared)
    wanted = _declared_type(family, modifiers)
    if stored.values == 0 or _fits(family, wanted, stored, values):
        return wanted, None
    if family == "text" and wanted != TEXT and not stored.blobs:
        return TEXT, f"declared {declared}, holds longer text: loaded as text"
    if wanted.modifiers and family == "numeric" and _fits(family, NUMERIC, stored, values):
        return NUMERIC, f"declared {declared}, holds numbers beyond it: loaded as numeric"
    if family == "date" and _fits("timestamp", TIMESTAMP, stored, values):
        return TIMESTAMP, f"declared {declared}, holds times too: loaded as timestamp"
    found = _narrowest(stored, values, numbers=family in {"integer", "real", "numeric"})
    if not declared.strip() or (not family and (stored.describe().count(" and ") == 0)):
        return found, None
    other = " other" if family in _TEXT_CHECKS and stored.texts else ""
    return found, f"declared {declared}, holds{other} {stored.describe()}: loaded as {found}"


def _declared_type(family: Family, modifiers: tuple[int, ...]) -> SqlType:
    if family == "text" and modifiers and 1 <= modifiers[0] <= _VARCHAR_LIMIT:
        return SqlType("varchar", modifiers[:1])
    if family == "numeric" and modifiers:
        precision, scale = (*modifiers, 0)[:2]
        if 1 <= precision <= _NUMERIC_LIMIT and scale <= precision:
            return SqlType("numeric", (precision, scale))
    return _WHEN_DECLARED[family]


def _fits(family: Family, wanted: SqlType, stored: Stored, values: Values) -> bool:
    """Tell whether every stored value is one of the declared kind."""
    others = stored.values
    if family == "integer":
        return stored.integers == others
    if family == "real":
        return stored.reals == others or (
            stored.integers + stored.reals == others and _exact(stored)
        )
    if family == "blob":
        return stored.blobs == others
    if stored.blobs or not family:
        return False
    if family == "numeric":
        return (stored.texts == 0 or all(is_decimal(as_text(v)) for v in values("text"))) and (
            not wanted.modifiers or all(_within(v, wanted.modifiers) for v in values(None))
        )
    if family == "text":
        return (
            not wanted.modifiers
            or (stored.max_bytes <= wanted.modifiers[0] and stored.texts == others)
            or all(len(as_text(value)) <= wanted.modifiers[0] for value in values(None))
        )
    if family == "boolean":
        return stored.reals == 0 and all(as_text(v).lower() in _TRUE | _FALSE for v in values(None))
    if family == "json":
        return all(is_json(as_text(value)) for value in values(None))
    return stored.texts == others and all(_TEXT_CHECKS[family](as_text(v)) for v in values("text"))


def _within(value: Any, modifiers: tuple[int, ...]) -> bool:
    number = Decimal(as_text(value))
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):  # infinite
        return False
    digits = "".join(map(str, number.as_tuple().digits))
    decimals = -exponent - (len(digits) - len(digits.rstrip("0")))
    precision, scale = modifiers
    return number.is_zero() or (decimals <= scale and number.adjusted() < precision - scale)


def _exact(stored: Stored) -> bool:
    return stored.min_integer >= -_EXACT_FLOAT and stored.max_integer <= _EXACT_FLOAT


def _narrowest(stored: Stored, values: Values, *, numbers: bool) -> SqlType:
    """Return the narrowest of bigint, double precision, numeric, text and bytea.

    Texts count as numbers only where the declared type is one (`numbers`).
    """
    if stored.blobs:
        if stored.blobs == stored.values or not all(map(_is_text, values("blob"))):
            return BYTEA
        return TEXT
    if stored.texts:
        if numbers and all(is_bigint(as_text(v)) for v in values("text")) and not stored.reals:
            return BIGINT
        if numbers and all(is_decimal(as_text(v)) for v in values("text")):
            return NUMERIC
        return TEXT
    if not stored.reals:
        return BIGINT
    return DOUBLE if _exact(stored) else NUMERIC


def _is_text(value: bytes) -> bool:
    text, foreign = decode(value)
    return not foreign and "\0" not in text


class Converter:
    """Turn a stored value into what COPY writes; counts texts that were not UTF-8."""

    def __init__(self, column: str, kind: SqlType) -> None:
        self._column = column
        self.foreign = 0
        self.convert: Callable[[Any], Any] = {
            "bytea": _as_bytes,
            "boolean": _as_boolean,
            "bigint": _as_number,
            "double precision": _as_number,
        }.get(kind.base, self._as_text)

    def _as_text(self, value: Any) -> str:
        if not isinstance(value, bytes):
            return str(value)
        text, foreign = decode(value)
        self.foreign += foreign
        if "\0" in text:
            raise RowRefused(f"column {self._column!r} holds a NUL, which Postgres can't store")
        return text


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _as_boolean(value: Any) -> bool:
    return as_text(value).lower() in _TRUE


def _as_number(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
