"""How believable it is that two columns which pass the gate are meant to be joined.

Surrogate keys run from 1 to n in every table, so that any of them includes any other: values
alone can't tell which join is meant. Names can. The stored score of compatibility stays what it
is; belief serves the selection without a chat model, and says which join is shown first.
"""

from __future__ import annotations

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

Words = tuple[str, ...]


@dataclass(frozen=True)
class JoinColumn:
    """One end of a possible join.

    `leads`: it is its table's first column, where keys stand by custom.
    """

    table_name: str
    column_name: str
    is_whole_number: bool
    is_unique: bool
    leads: bool


@lru_cache(maxsize=100_000)
def believe(a: JoinColumn, b: JoinColumn) -> float:
    """Return from 0 (chance) to 1 (a join as people name them) how believable a = b is."""
    beliefs = []
    if b.is_unique:
        beliefs.append(_believe_child(a, b))
    if a.is_unique:
        beliefs.append(_believe_child(b, a))
    return max(beliefs, default=0.0)


@lru_cache(maxsize=100_000)
def hints(table_name: str, column_name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the beginnings of a column's words, and those with its table's words.

    A cheap test: there is no belief in a join unless one end's first set meets the other's second.
    """
    column = {
        word[:_SHORTEST_ABBREVIATION] for word in name_words(column_name) if word not in KEY_WORDS
    }
    table = {word[:_SHORTEST_ABBREVIATION] for word in table_words(table_name)}
    return frozenset(column), frozenset(column | table)


def table_words(table_name: str) -> Words:
    """Return the words of a table's name, without a prefix like `tbl_`."""
    words = name_words(table_name)
    return tuple(word for word in words if word not in _TABLE_PREFIXES) or words


def _believe_child(child: JoinColumn, parent: JoinColumn) -> float:
    """Return the belief that the child's column points to the parent's unique one."""
    child_words, parent_words = name_words(child.column_name), name_words(parent.column_name)
    child_core, parent_core = _core(child_words), _core(parent_words)
    table = _core(table_words(parent.table_name)) or table_words(parent.table_name)
    child_is_key = not KEY_WORDS.isdisjoint(child_words)
    parent_is_key = not KEY_WORDS.isdisjoint(parent_words)
    is_text = not (child.is_whole_number and parent.is_whole_number)
    names_table = _ends_with(child_core, table) or _same(child_core, table[-1:])
    if "".join(child_words) == "".join(parent_words):
        # id = id, or age = age, is no hint.
        if not child_core or not (child_is_key or is_text or parent.leads):
            return 0.0
        owned = parent.leads or _ends_with(parent_core, table) or _same(parent_core, table[:1])
        # Else two tables that point to the same third one.
        return 1.0 if owned else 0.6
    # orders.customer_id = customers.id
    own_key = not parent_core or any(
        _same(parent_core, words) for words in (table, table[-1:])
    )  # fmt: skip
    if names_table and own_key and (child_is_key or parent_is_key or is_text):
        return 1.0
    # stu_no = student_id; home_airport_code = airport_code
    if (child_is_key or parent_is_key or is_text) and _same(child_core, parent_core):
        return 0.9 if parent.leads else 0.5
    if ((child_is_key and parent_is_key) or is_text) and _ends_with(child_core, parent_core):
        return 0.9 if parent.leads else 0.5
    # appointment.patient = patient.ssn
    if names_table and (parent_is_key or parent.leads) and not child.leads:
        return 0.8
    if set(child_core) & set(parent_core) and ((child_is_key and parent_is_key) or is_text):
        return 0.5 if parent.leads else 0.3
    return 0.0


def _core(words: Words) -> Words:
    """Return the words a name is special for: of `title_id` title, of `name` none."""
    core = tuple(word for word in words if word not in _GENERIC)
    if core or KEY_WORDS.isdisjoint(words):
        return core
    return tuple(word for word in words if word not in KEY_WORDS)


def _same(a: Words, b: Words) -> bool:
    return len(a) == len(b) > 0 and all(_abbreviates(x, y) for x, y in zip(a, b, strict=True))


def _ends_with(words: Words, end: Words) -> bool:
    return len(words) >= len(end) > 0 and _same(words[-len(end) :], end)


def _abbreviates(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    return a == b or (len(short) >= _SHORTEST_ABBREVIATION and long.startswith(short))
