"""How well the names of two columns fit a join, as people name them.

Surrogate keys run from 1 to n in every table, so that any of them includes any other: values
alone can't tell which join is meant. Names can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from coret_pg.words import name_words

# Words that say a column is a key, and words that no name is special for.
KEY_WORDS = frozenset(
    ["id", "no", "nr", "code", "cd", "key", "number", "num", "uid", "ref", "pk", "fk"]
)
_GENERIC = KEY_WORDS | frozenset(
    ["name", "nm", "title", "type", "date", "year", "value", "description", "status"]
)
# What table names start with by convention, not by meaning.
_TABLE_PREFIXES = frozenset(["tbl", "t", "tb", "ref", "dim", "fact"])
# A name shortened to fewer letters than this could be anybody's.
_SHORTEST_ABBREVIATION = 3
_SHORTEST_ENDING = 4

Words = tuple[str, ...]
Comparison = Callable[[Words, Words], bool]

# Two columns that point to the same third one.
SIBLINGS = 0.6
# `part` may shorten `party`, or not.
ABBREVIATED = 0.9


@dataclass(frozen=True)
class JoinColumn:
    """One end of a possible join, by its names.

    `leads`: it is its table's first column, where keys stand by custom.
    """

    table_name: str
    column_name: str
    leads: bool


@lru_cache(maxsize=100_000)
def fit(child: JoinColumn, parent: JoinColumn, *, whole_numbers: bool) -> float:
    """Return how well the names say that the child's column points to the parent's key.

    1: a join as people name them; 0: no hint. `whole_numbers`: both columns hold only these,
    which are names of something only where a word like `id` says so.
    """
    exact = _fit(child, parent, whole_numbers, _same)
    return max(exact, min(ABBREVIATED, _fit(child, parent, whole_numbers, _alike)))


def _fit(child: JoinColumn, parent: JoinColumn, whole_numbers: bool, same: Comparison) -> float:
    child_words, parent_words = name_words(child.column_name), name_words(parent.column_name)
    child_core, parent_core = _core(child_words), _core(parent_words)
    table, own_table = _core_of_table(parent.table_name), _core_of_table(child.table_name)
    child_is_key = not KEY_WORDS.isdisjoint(child_words)
    parent_is_key = not KEY_WORDS.isdisjoint(parent_words)
    is_text = not whole_numbers
    names_table = _ends_with(child_core, table, same) or same(child_core, table[-1:])
    if "".join(child_words) == "".join(parent_words):
        # id = id, or age = age, is no hint.
        if not child_core or not (child_is_key or is_text or parent.leads):
            return 0.0
        owned = parent.leads or _ends_with(parent_core, table, same) or same(parent_core, table[:1])
        # Else two tables that point to the same third one.
        return 1.0 if owned else SIBLINGS
    # orders.customer_id = customers.id
    own_key = not parent_core or same(parent_core, table) or same(parent_core, table[-1:])
    if names_table and own_key and (child_is_key or parent_is_key or is_text):
        return 1.0
    # stu_no = student_id; home_airport_code = airport_code
    if (child_is_key or parent_is_key or is_text) and same(child_core, parent_core):
        return 0.9 if parent.leads else 0.5
    if ((child_is_key and parent_is_key) or is_text) and _ends_with(child_core, parent_core, same):
        return 0.9 if parent.leads else 0.5
    # appointment.patient = patient.ssn, but not a table's own name for itself
    if names_table and (parent_is_key or parent.leads) and not same(child_core, own_table):
        return 0.8
    if set(child_core) & set(parent_core) and ((child_is_key and parent_is_key) or is_text):
        return 0.5 if parent.leads else 0.3
    return 0.0


@lru_cache(maxsize=100_000)
def hints(table_name: str, column_name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return beginnings and endings of a column's telling words, and those with its table's.

    A cheap test: no join fits unless one end's first set meets the other's second.
    """
    column = _stems(_core(name_words(column_name)))
    return frozenset(column), frozenset(column | _stems(_core_of_table(table_name)))


def table_words(table_name: str) -> Words:
    """Return the words of a table's name, without a prefix like `tbl_`."""
    words = name_words(table_name)
    return tuple(word for word in words if word not in _TABLE_PREFIXES) or words


def _core(words: Words) -> Words:
    """Return the words a name is special for: of `title_id` title, of `name` none."""
    core = tuple(word for word in words if word not in _GENERIC)
    if core or KEY_WORDS.isdisjoint(words):
        return core
    return tuple(word for word in words if word not in KEY_WORDS)


def _core_of_table(table_name: str) -> Words:
    words = table_words(table_name)
    return _core(words) or words


def _same(a: Words, b: Words) -> bool:
    return a == b != ()


def _alike(a: Words, b: Words) -> bool:
    """Tell whether two names are the same but for shortened words."""
    return len(a) == len(b) > 0 and all(_abbreviates(x, y) for x, y in zip(a, b, strict=True))


def _ends_with(words: Words, end: Words, same: Comparison) -> bool:
    return len(words) >= len(end) > 0 and same(words[-len(end) :], end)


def _abbreviates(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    return (
        a == b
        or (len(short) >= _SHORTEST_ABBREVIATION and long.startswith(short))
        # hero_id points to superhero.
        or (len(short) >= _SHORTEST_ENDING and long.endswith(short))
    )


def _stems(words: Words) -> set[str]:
    """Return what two words have in common where one is the other or shortens it."""
    endings = {f"~{word[-_SHORTEST_ENDING:]}" for word in words if len(word) >= _SHORTEST_ENDING}
    return {word[:_SHORTEST_ABBREVIATION] for word in words} | endings
