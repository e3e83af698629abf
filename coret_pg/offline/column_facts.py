"""What is read of one column: counts, extremes, frequent values, and the keys it is compared by.

Exact below `sketch_rows` rows. Above, a column of many values is read in two scans whose memory
doesn't grow with the rows: its counts and extremes are exact, of its keys those are kept whose
hash ends in so many zero bits, whichever column they are in (a consistent sample).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from coret_pg.database.sqlfiles import query
from coret_pg.offline.key_forms import FORMS, NARROWER, KeyForm, unkeyed_form

_FREQUENT = 5
# Values of text columns with at most so many are kept whole, for questions that name one. These
# are contents: a policy on what may be sampled has to hold for them as it does for snapshots.
_MOST_KEPT_VALUES = 1_000
_LONGEST_KEPT_VALUE = 60
# Rows up to which a further scan costs more than to build at once what may turn out not to be
# needed: the keys of an interval; all values of a text column.
_KEYS_AT_ONCE = 1_000
_VALUES_AT_ONCE = 20_000
# Above, values are only counted where they occur twice on average.
_SMALL_TABLE = 2_000
# About so many keys make a sketch; a column with fewer values than the second is read exactly.
_SKETCH_KEYS = 16_384
_FEW_VALUES = 100_000
# Kinds whose keys are themselves: gaps in them can be reasoned about.
_WHOLE = ("integer", "date")

_NO_TEXTS = "NULL::text[]"
_NO_KEYS = "NULL::bigint[]"
_SHORT_TEXTS = f"array_agg(value) FILTER (WHERE length(value) <= {_LONGEST_KEPT_VALUE})"
_SORTED_KEYS = "array_agg({key} ORDER BY {key}) FILTER (WHERE value IS NOT NULL)"
_UNLESS_INTERVAL = (
    "CASE WHEN f.keys[cardinality(f.keys)]::numeric - f.keys[1] + 1 <> cardinality(f.keys) "
    "THEN f.keys END"
)


@dataclass(frozen=True)
class ColumnReader:
    """Reads one column over a connection that can only read."""

    connection: psycopg.Connection
    table: sql.Identifier
    column: sql.Identifier
    type_name: str
    family: str | None

    def read(
        self, *, sketch_above: int | None, estimated_rows: int, mostly_distinct: bool
    ) -> dict[str, Any]:
        """Return what sql/queries/store_profile.sql takes, and `kept_values`.

        `sketch_above`: rows above which a column of many values is sketched; None: never.
        `mostly_distinct`: a guess, which decides on the way to read but not on what is found.
        """
        kind = self._kind()
        form = FORMS[kind] if kind else unkeyed_form(self.type_name)
        facts = None
        if sketch_above is not None and estimated_rows > sketch_above:
            facts = self._sketch(form, kind, estimated_rows)
            mostly_distinct = False
        if facts is None and kind and mostly_distinct and estimated_rows > _SMALL_TABLE:
            facts = self._distinct(form, kind)
        if facts is None:
            facts = self._grouped(form, kind, estimated_rows)
        kept = None
        if self.family == "text" and 0 < facts["distinct_count"] <= _MOST_KEPT_VALUES:
            kept = facts["few_values"]
            if kept is None:
                kept = self._value("profile_values", form, longest=str(_LONGEST_KEPT_VALUE))
        is_small = estimated_rows <= _SMALL_TABLE
        return {
            **facts,
            "frequent_values": self._frequent(facts, form, kept, even_if_rare=is_small),
            "kept_values": kept,
            "key_kind": kind,
        }

    def _frequent(
        self, facts: dict[str, Any], form: KeyForm, kept: list[str] | None, *, even_if_rare: bool
    ) -> list[str]:
        """Return values that repeat, most frequent first, then others."""
        frequent: list[str] = []
        values = facts["row_count"] - facts["null_count"]
        if even_if_rare or 2 * facts["distinct_count"] <= values:
            frequent = facts["repeated_values"]
            if frequent is None:
                frequent = self._value("profile_repeated", form)
        if len(frequent) >= min(_FREQUENT, facts["distinct_count"]):
            return frequent
        if self.family != "text":
            # Of numbers and dates that don't repeat one shows the form.
            others = [facts["min_value"]]
        else:
            others = kept or facts["examples"] or self._value("profile_examples", form)
        return list(dict.fromkeys([*frequent, *sorted(others)]))[:_FREQUENT]

    def tidied_values(self) -> set[str]:
        """Return the distinct values of a text column in lower case, without blanks around."""
        statement = self._fill("profile_tidied", FORMS["text"])
        return {row[0] for row in self.connection.execute(statement)}

    def _kind(self) -> str | None:
        if self.family not in NARROWER:
            return self.family
        narrower, condition = NARROWER[self.family]
        statement = self._fill("profile_kind", FORMS[self.family], condition=condition)
        row = self.connection.execute(statement).fetchone()
        return narrower if row and row[0] else self.family

    def _grouped(self, form: KeyForm, kind: str | None, estimated_rows: int) -> dict[str, Any]:
        """Return facts from a hash table of the values."""
        is_whole = kind in _WHOLE
        keys = kept_keys = _NO_KEYS
        min_key = max_key = "NULL::bigint"
        if is_whole and estimated_rows > _KEYS_AT_ONCE:
            # They may turn out to be an interval, whose keys needn't be built.
            min_key, max_key = (form.key.format(value=end) for end in ("f.least", "f.greatest"))
        elif kind:
            keys = _SORTED_KEYS.format(key=form.key.format(value="value"))
            kept_keys = _UNLESS_INTERVAL if is_whole else "f.keys"
            min_key, max_key = "f.keys[1]", "f.keys[cardinality(f.keys)]"
        gathers = self.family == "text" and estimated_rows <= _VALUES_AT_ONCE
        facts = self._row(
            "profile_facts", form, keys=keys, kept_keys=kept_keys, min_key=min_key, max_key=max_key,
            values=_SHORT_TEXTS if gathers else _NO_TEXTS,
        )  # fmt: skip
        if not facts["distinct_count"]:
            facts.update(keys=None, min_key=None, max_key=None)
        elif is_whole and keys == _NO_KEYS and not _is_interval(facts):
            facts["keys"] = self._value("profile_keys", form)
        return {**facts, "sample_shift": 0}

    def _distinct(self, form: KeyForm, kind: str) -> dict[str, Any]:
        """Return facts from the sorted keys: values count as distinct where their keys are."""
        examples = _NO_TEXTS
        if self.family == "text":
            examples = f"({_template('profile_examples', form, ()).as_string()})"
        facts = self._row(
            "profile_distinct", form, examples=examples,
            kept_keys=_UNLESS_INTERVAL if kind in _WHOLE else "f.keys",
        )  # fmt: skip
        return {**facts, "sample_shift": 0}

    def _sketch(
        self, form: KeyForm, kind: str | None, estimated_rows: int
    ) -> dict[str, Any] | None:
        """Return facts and a sketch of the keys; None where the values are few."""
        if not kind:
            # Also what has no meaning as a key is counted this way: by a hash of its text.
            form = KeyForm(form.value, FORMS["text"].key)
        shift = max(0, math.ceil(math.log2(estimated_rows / _SKETCH_KEYS)))
        sketch = self._row("profile_sketch", form, shift=str(shift))
        found = sketch["found"]
        if found << shift <= _FEW_VALUES:
            return None
        facts = self._row("profile_totals", form)
        values = facts["row_count"] - facts["null_count"]
        facts |= {
            # A value that is sampled is seen wherever it occurs: what repeats nowhere is unique.
            "distinct_count": values if sketch["is_unique"] else min(values - 1, found << shift),
            "repeated_values": sketch["repeated_values"],
            "keys": sketch["keys"],
            "few_values": None,
            "examples": None,
            "sample_shift": shift,
        }
        if not kind:
            facts.update(keys=None, min_key=None, max_key=None)
        elif kind in _WHOLE and _is_interval(facts):
            facts["keys"] = None
        return facts

    def _fill(self, name: str, form: KeyForm, **parts: str) -> sql.Composed:
        template = _template(name, form, tuple(parts.items()))
        return template.format(table=self.table, column=self.column)

    def _row(self, name: str, form: KeyForm, **parts: str) -> dict[str, Any]:
        # Binary, so that the keys arrive in the form they are handed on in.
        with self.connection.cursor(row_factory=dict_row, binary=True) as cursor:
            return cursor.execute(self._fill(name, form, **parts)).fetchone() or {}

    def _value(self, name: str, form: KeyForm, **parts: str) -> Any:
        with self.connection.cursor(binary=True) as cursor:
            row = cursor.execute(self._fill(name, form, **parts)).fetchone()
        return row[0] if row else None


def _is_interval(facts: dict[str, Any]) -> bool:
    return bool(facts["max_key"] - facts["min_key"] + 1 == facts["distinct_count"])


@cache
def _template(name: str, form: KeyForm, parts: tuple[tuple[str, str], ...]) -> sql.SQL:
    """Return a statement in which only {table} and {column} are open.

    Everything else is ours: constants of this module and of key_forms.
    """
    # Without comments: they name what is filled in, and would be filled too.
    lines = query(name).as_string().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("--")).format(
        table="{table}",
        column="{column}",
        value=form.value,
        key=form.key.format(value=form.value),
        value_key=form.key.format(value="value"),
        shown=form.shown.format(value="value"),
        shown_least=form.shown.format(value="f.least"),
        shown_greatest=form.shown.format(value="f.greatest"),
        **dict(parts),
    )  # fmt: skip
    return sql.SQL(text)
