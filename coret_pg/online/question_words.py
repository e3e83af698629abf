"""What a question's words point to: tables by their names, columns' names and values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coret_pg.join_names import KEY_WORDS, Words, table_words
from coret_pg.words import name_words, root, stem, text_words

_LONGEST_PHRASE = 5
_SHORTEST_VALUE = 3
# How much a word counts for a table by what it matches; set on Spider's training questions.
WHOLE_NAME = 1.0
PART_OF_NAME = 0.8
COLUMN = 0.8
# orders.customer_id only points to customers.
KEY_COLUMN = 0.6
VALUE = 0.8
_STOP_WORDS = """
    a about above after all also among an and any are as at average be been before below between
    both but by can could did different display distinct do does down during each end ever every
    find five for four from get give had has have he her highest his how i id if in into is it
    its know least less list lowest many me more most much my need no not number of off on one
    only or other our out over per please return same she should show since so some start
    started starting still tell than that the their them then there these they this those three
    to total two under up us use used using want was we were what when where which who whom
    whose why will with without would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True)
class Phrase:
    """Up to five neighbouring words of a question, and the texts they may be in the data."""

    start: int
    length: int
    spellings: tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """A phrase of the question that is a value in some tables; the fewer, the more it tells."""

    phrase: Phrase
    table_ids: frozenset[int]
    weight: float


@dataclass(frozen=True)
class NamedTable:
    """A table's names, as words of questions are held against them."""

    table_id: int
    table_name: str
    column_names: Sequence[str]


class QuestionWords:
    """A question, word by word."""

    def __init__(self, question: str) -> None:
        self.words = text_words(question)
        self.roots = [root(word) for word in self.words]

    @property
    def phrases(self) -> list[Phrase]:
        """Return the phrases worth a look-up: no stop words alone, no numbers, nothing tiny."""
        found = []
        for start in range(len(self.words)):
            for length in range(1, min(_LONGEST_PHRASE, len(self.words) - start) + 1):
                words = self.words[start : start + length]
                if STOP_WORDS.issuperset(words):
                    continue
                if length == 1 and (len(words[0]) < _SHORTEST_VALUE or words[0].isdigit()):
                    continue
                singular = [*words[:-1], stem(words[-1])]
                spellings = dict.fromkeys([" ".join(words), " ".join(singular)])
                found.append(Phrase(start, length, tuple(spellings)))
        return found

    def coverage(
        self, tables: Sequence[NamedTable], values: Sequence[Value]
    ) -> NDArray[np.float32]:
        """Return how well each table covers each word, (tables, words), 0 to 1."""
        covered = np.zeros((len(tables), len(self.words)), dtype=np.float32)
        asked = set(self.roots)
        for row, table in enumerate(tables):
            own = _roots(table_words(table.table_name))
            by_name = WHOLE_NAME if asked.issuperset(own) else PART_OF_NAME
            columns = [name_words(name) for name in table.column_names]
            keys = _roots(w for c in columns if not KEY_WORDS.isdisjoint(c) for w in c)
            others = _roots(w for c in columns if KEY_WORDS.isdisjoint(c) for w in c)
            for place, (word, its_root) in enumerate(zip(self.words, self.roots, strict=True)):
                if word in STOP_WORDS or word.isdigit():
                    continue
                if its_root in own:
                    covered[row, place] = by_name
                elif its_root in others:
                    covered[row, place] = COLUMN
                elif its_root in keys:
                    covered[row, place] = KEY_COLUMN
            for value in values:
                if table.table_id in value.table_ids:
                    for place in range(
                        value.phrase.start, value.phrase.start + value.phrase.length
                    ):
                        if self.words[place] not in STOP_WORDS:
                            covered[row, place] = max(covered[row, place], VALUE * value.weight)
        return covered

    def names_wholly(self, words: Words) -> bool:
        """Return whether every word of a name is in the question, a stop word not alone."""
        return set(self.roots).issuperset(_roots(words)) and not STOP_WORDS.issuperset(words)


def weigh_values(
    phrases: Sequence[Phrase], found: Mapping[str, Sequence[int]], pool_tables: int
) -> list[Value]:
    """Return the phrases that are values, by the tables of each spelling found.

    A value of one table weighs 1, one that is in every table 0, with the logarithm between.
    """
    values = []
    for phrase in phrases:
        table_ids = frozenset(
            table_id for spelling in phrase.spellings for table_id in found.get(spelling, ())
        )
        if table_ids:
            weight = 1 - math.log(len(table_ids)) / math.log(max(pool_tables, 2))
            values.append(Value(phrase, table_ids, max(0.0, weight)))
    return values


def _roots(words: Iterable[str]) -> frozenset[str]:
    return frozenset(root(word) for word in words)
