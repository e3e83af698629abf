"""What is read of one column: counts, extremes, frequent values, and the keys it is compared by.

Exact below `sketch_rows` rows. Above, a column of many values is read in two scans whose memory
doesn't grow with the rows: its counts and extremes are exact, of its keys those are kept whose
hash ends in so many zero bits, whichever column they are in (a consistent sample).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
_SMALL_TABLE = 20_000
_ALL = sql.SQL("array_agg(value::text) FILTER (WHERE length(value::text) <= {longest})").format(
    longest=sql.Literal(_LONGEST_KEPT_VALUE)
)
_NONE = sql.SQL("NULL::text[]")
# About so many keys make a sketch; a column with fewer values than the second is read exactly.
_SKETCH_KEYS = 16_384
_FEW_VALUES = 100_000
# Kinds whose keys are themselves: gaps in them can be reasoned about.
_WHOLE = ("integer", "date")


@dataclass(frozen=True)
class ColumnReader:
    """Reads one column over a connection that can only read."""

    connection: psycopg.Connection
    table: sql.Identifier
    column: sql.Identifier
    type_name: str
    family: str | None

    def read(self, *, sketch_above: int | None, estimated_rows: int) -> dict[str, Any]:
        """Return what sql/queries/store_profile.sql takes, and `kept_values`.

        `sketch_above`: rows above which a column of many values is sketched; None: never.
        """
        kind = self._kind()
        form = FORMS[kind] if kind else unkeyed_form(self.type_name)
        facts = None
        if sketch_above is not None and estimated_rows > sketch_above:
            facts = self._sketch(form, estimated_rows, has_keys=kind is not None)
        if facts is None:
            facts = self._exact(form, kind, estimated_rows)
        kept = None
        if self.family == "text" and 0 < facts["distinct_count"] <= _MOST_KEPT_VALUES:
            kept = facts["few_values"]
            if kept is None:
                kept = self._value("profile_values", form, longest=sql.Literal(_LONGEST_KEPT_VALUE))
        return {
            **facts,
            "frequent_values": self._frequent(facts, form, kept),
            "kept_values": kept,
            "key_kind": kind,
        }

    def _frequent(self, facts: dict[str, Any], form: KeyForm, kept: list[str] | None) -> list[str]:
        """Return values that repeat, most frequent first, then the least ones."""
        frequent: list[str] = facts["repeated_values"]
        if len(frequent) >= min(_FREQUENT, facts["distinct_count"]):
            return frequent
        if self.family != "text":
            # Of numbers and dates that don't repeat one shows the form.
            others = [facts["min_value"]]
        elif kept:
            others = sorted(kept)[: 2 * _FREQUENT]
        else:
            others = self._value("profile_least", form, most=sql.Literal(10 * _FREQUENT))
        return list(dict.fromkeys([*frequent, *others]))[:_FREQUENT]

    def tidied_values(self) -> set[str]:
        """Return the distinct values of a text column in lower case, without blanks around."""
        statement = self._fill("profile_tidied", FORMS["text"])
        return {row[0] for row in self.connection.execute(statement)}

    def _kind(self) -> str | None:
        if self.family not in NARROWER:
            return self.family
        narrower, condition = NARROWER[self.family]
        statement = query("profile_kind").format(
            table=self.table,
            column=self.column,
            condition=sql.SQL(condition).format(column=self.column),
        )
        row = self.connection.execute(statement).fetchone()
        return narrower if row and row[0] else self.family

    def _exact(self, form: KeyForm, kind: str | None, estimated_rows: int) -> dict[str, Any]:
        # Whole numbers may turn out to be an interval, whose keys needn't be built.
        all_keys = (
            sql.SQL("NULL::bigint[]")
            if kind is None or kind in _WHOLE
            else sql.SQL("array_agg({key} ORDER BY {key}) FILTER (WHERE value IS NOT NULL)").format(
                key=sql.SQL(form.key)
            )
        )
        # A second scan for few values costs more than to gather them in a small table.
        is_small = self.family == "text" and estimated_rows <= _SMALL_TABLE
        facts = self._row("profile_facts", form, keys=all_keys, values=_ALL if is_small else _NONE)
        if kind in _WHOLE and facts["distinct_count"] > 0:
            if facts["max_key"] - facts["min_key"] + 1 != facts["distinct_count"]:
                facts["keys"] = self._value("profile_keys", form)
        elif kind is None:
            facts.update(keys=None, min_key=None, max_key=None)
        return {**facts, "sample_shift": 0}

    def _sketch(
        self, form: KeyForm, estimated_rows: int, *, has_keys: bool
    ) -> dict[str, Any] | None:
        """Return facts and a sketch of the keys; None where the values are few."""
        # Also what has no meaning as a key is counted this way: by a hash of its text.
        form = form if has_keys else KeyForm(form.value, FORMS["text"].key)
        shift = max(0, math.ceil(math.log2(estimated_rows / _SKETCH_KEYS)))
        sketch = self._row("profile_sketch", form, shift=sql.Literal(shift))
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
            "sample_shift": shift,
        }
        if not has_keys:
            facts.update(keys=None, min_key=None, max_key=None)
        return facts

    def _fill(self, name: str, form: KeyForm, **parts: sql.Composable) -> sql.Composed:
        # The fragments are constants of key_forms; only identifiers come from outside, quoted.
        return query(name).format(
            table=self.table,
            value=sql.SQL(form.value).format(column=self.column),
            key=sql.SQL(form.key),
            **parts,
        )

    def _row(self, name: str, form: KeyForm, **parts: sql.Composable) -> dict[str, Any]:
        # Binary, so that the keys arrive in the form they are handed on in.
        with self.connection.cursor(row_factory=dict_row, binary=True) as cursor:
            return cursor.execute(self._fill(name, form, **parts)).fetchone() or {}

    def _value(self, name: str, form: KeyForm, **parts: sql.Composable) -> Any:
        with self.connection.cursor(binary=True) as cursor:
            row = cursor.execute(self._fill(name, form, **parts)).fetchone()
        return row[0] if row else None
