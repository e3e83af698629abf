"""How values of each type family compare, and the 64-bit keys they are compared by.

Integers and dates are keys themselves: exact, and ranges of them can be reasoned about. The
rest are hashed from their text. Fragments run in the source; {column} is filled in quoted,
{value} with whatever stands for the value.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class KeyForm:
    """SQL of a column's comparable value, of the key made of it, and of how it is shown."""

    value: str
    key: str
    shown: str = "{value}::text"


_HASH = "hashtextextended({value}::text, 0)"
_NO_KEY = "NULL::bigint"
# The two infinities have keys of their own: arithmetic on them is an error.
_INFINITE = "WHEN {value} > 'epoch' THEN 9223372036854775807 ELSE -9223372036854775808 END"
# Microseconds. In the years between, doubles of seconds are near enough (2^51 microseconds) to
# be rounded to them, in half the time.
_MOMENT = (
    "CASE WHEN {value} >= '1900-01-01' AND {value} < '2040-01-01' "
    "THEN (date_part('epoch', {value}) * 1000000)::bigint "
    "WHEN isfinite({value}) THEN (extract(epoch FROM {value}) * 1000000)::bigint " + _INFINITE
)

FORMS = {
    "integer": KeyForm("{column}::bigint", "{value}"),
    "decimal": KeyForm(
        "{column}", "hashtextextended(trim_scale({value})::text, 0)", "trim_scale({value})::text"
    ),
    "text": KeyForm('{column}::text COLLATE "C"', _HASH),
    "uuid": KeyForm('{column}::text COLLATE "C"', _HASH),
    "date": KeyForm(
        "{column}::date",
        "CASE WHEN isfinite({value}) THEN ({value} - date '2000-01-01')::bigint " + _INFINITE,
    ),
    "timestamp": KeyForm("{column}", _MOMENT),
    "timestamptz": KeyForm("{column}", _MOMENT),
}

# A decimal column of whole numbers only compares as an integer, a timestamp column of midnights
# only as a date: what it is narrowed to, and the condition every value has to meet.
NARROWER = {
    "decimal": ("integer", "{column} = trunc({column}) AND abs({column}) < 9000000000000000000"),
    "timestamp": ("date", "isfinite({column}) AND {column} = date_trunc('day', {column})"),
}


def unkeyed_form(type_name: str) -> KeyForm:
    """Return the form of a type that has no meaning as a key: its text, or a blob's length."""
    if type_name == "bytea":
        return KeyForm("'<' || octet_length({column}) || ' bytes>'", _NO_KEY)
    return KeyForm('{column}::text COLLATE "C"', _NO_KEY)
