"""Draw plausible values; the same seed draws the same ones on every machine."""

import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import TypeVar

from coret_pg.demo import words

T = TypeVar("T")

ASCII = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "o", "ë": "e", "é": "e"})


class Draw(random.Random):
    """A random source for demo values; seed it with a text.

    Only integers, comparisons, + and * are used on what is drawn: no function of the
    platform's maths library, whose last bit may differ between machines.
    """

    def chance(self, share: float) -> bool:
        """Return True in this share of calls."""
        return self.random() < share

    def optional(self, value: T, missing: float) -> T | None:
        """Return the value, or None in this share of calls."""
        return None if self.chance(missing) else value

    def flag(self, share: float) -> int:
        """Return 1 in this share of calls, else 0."""
        return int(self.chance(share))

    def money(self, low: int, high: int) -> float:
        """Return an amount between low and high, in whole cents."""
        return self.randint(low * 100, high * 100) / 100

    def tenths(self, low: int, high: int) -> float:
        """Return a measurement between low and high, with one decimal."""
        return self.randint(low * 10, high * 10) / 10

    def day(self, first: str, last: str) -> str:
        """Return a day between two ISO dates, both included."""
        start = date.fromisoformat(first)
        span = (date.fromisoformat(last) - start).days
        return (start + timedelta(days=self.randint(0, span))).isoformat()

    def days(self, count: int, first: str, last: str) -> list[str]:
        """Return this many days between two ISO dates, in order."""
        return sorted(self.day(first, last) for _ in range(count))

    def after(self, day: str, least: int, most: int) -> str:
        """Return a day that many days after an ISO date."""
        return (date.fromisoformat(day) + timedelta(days=self.randint(least, most))).isoformat()

    def regulars(self, parents: Sequence[T], share: float) -> list[T]:
        """Return this share of the parents in random order: the ones that are referred to."""
        return self.sample(list(parents), max(1, int(len(parents) * share)))

    def skewed(self, parents: Sequence[T]) -> T:
        """Return one of the parents, the earlier ones more often."""
        at = self.random()
        return parents[int(len(parents) * at * at)]

    def several(self, parents: Sequence[T], least: int, most: int) -> list[T]:
        """Return a few different parents, the earlier ones more often."""
        drawn = [self.skewed(parents) for _ in range(self.randint(least, most))]
        return list(dict.fromkeys(drawn))

    def people(self, count: int) -> Iterator[tuple[str, str]]:
        """Yield first and last names; no pair comes twice."""
        pairs = [(first, last) for first in words.FIRST_NAMES for last in words.LAST_NAMES]
        yield from self.sample(pairs, count)

    def untidy(self, text: str, share: float) -> str:
        """Return the text, in this share of calls with a trailing blank or in upper case."""
        if not self.chance(share):
            return text
        return self.choice([text + " ", text.upper()])

    def street(self) -> str:
        """Return a street and a house number."""
        return f"{self.choice(words.STREETS)} {self.randint(1, 140)}"

    def phone(self) -> str:
        """Return a telephone number nobody has."""
        return f"+00 555 {self.randint(0, 9999):04d}"


def email(first: str, last: str, host: str) -> str:
    """Return the address of a person at a host."""
    return f"{first}.{last}@{host}".lower().translate(ASCII)
