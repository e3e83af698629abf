"""How values of each type family compare, and the 64-bit keys they are compared by.

Integers and dates are keys themselves: exact, and ranges of them can be reasoned about. The
rest are hashed from their text. Fragments run in the source; {column} is filled in quoted.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class KeyForm:
    """SQL of a column's comparable value, and of the key made of `value`."""

    value: str
    key: str


_HASH = "hashtextextended(value::text, 0)"
_NO_KEY = "NULL::bigint"


def _finite(key: str) -> str:
    """Give the two infinities keys of their own: arithmetic on them is an error."""
    return (
        f"CASE WHEN isfinite(value) THEN {key} WHEN value > 'epoch' "
        "THEN 9223372036854775807 ELSE -9223372036854775808 END"
    )


FORMS = {
    "integer": KeyForm("{column}::bigint", "value"),
    "decimal": KeyForm("trim_scale({column})", _HASH),
    "text": KeyForm('{column}::text COLLATE "C"', _HASH),
    "uuid": KeyForm('{column}::text COLLATE "C"', _HASH),
    "date": KeyForm("{column}::date", _finite("(value - date '2000-01-01')::bigint")),
    "timestamp": KeyForm("{column}", _finite("(extract(epoch FROM value) * 1000000)::bigint")),
    "timestamptz": KeyForm("{column}", _finite("(extract(epoch FROM value) * 1000000)::bigint")),
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
