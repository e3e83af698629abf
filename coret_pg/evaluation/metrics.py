"""How well a set of tables answers a question, and the means over many questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Score:
    """One question's metrics, fractions from 0 to 1, and the number of tables answered."""

    precision: float
    recall: float
    f1: float
    perfect_recall: float
    exact_match: float
    tables: float


@dataclass(frozen=True)
class MeanScore(Score):
    """The means of several questions' metrics; `f1` is the mean of F1, not the F1 of means."""

    questions: int


METRICS = tuple(field.name for field in fields(Score))


def score(answer: Collection[str], gold: Collection[str]) -> Score:
    """Return the metrics of an answer: table names, spelled as the gold ones are.

    `gold` holds at least one. An empty answer has precision, recall and F1 of 0. Perfect recall:
    no gold table is missing; exact match: and no other is there.
    """
    answered, wanted = set(answer), set(gold)
    hits = len(answered & wanted)
    return Score(
        precision=hits / len(answered) if answered else 0.0,
        recall=hits / len(wanted),
        f1=2 * hits / (len(answered) + len(wanted)),
        perfect_recall=float(wanted <= answered),
        exact_match=float(wanted == answered),
        tables=float(len(answered)),
    )


def mean(scores: Sequence[Score]) -> MeanScore | None:
    """Return the mean of each metric over questions; None where there is no question."""
    if not scores:
        return None
    count = len(scores)
    return MeanScore(
        questions=count,
        **{name: sum(getattr(one, name) for one in scores) / count for name in METRICS},
    )
