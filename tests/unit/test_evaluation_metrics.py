"""Metrics against values worked out by hand, and what must hold for every answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coret_pg.evaluation.metrics import METRICS, Score, mean, score

NAMES = st.sets(st.sampled_from(["a.t", "a.u", "b.t", "c.x", "c.y"]))


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        (["a.t"], {"a.t"}, Score(1, 1, 1, 1, 1, 1)),
        (["a.t", "b.t", "c.x", "c.y"], {"a.t", "a.u"}, Score(0.25, 0.5, 1 / 3, 0, 0, 4)),
        (["a.t", "a.u", "b.t"], {"a.t", "a.u"}, Score(2 / 3, 1, 0.8, 1, 0, 3)),
        (["a.t"], {"a.t", "a.u"}, Score(1, 0.5, 2 / 3, 0, 0, 1)),
        (["b.t"], {"a.t"}, Score(0, 0, 0, 0, 0, 1)),
        ([], {"a.t"}, Score(0, 0, 0, 0, 0, 0)),
        (["a.t", "a.t"], {"a.t"}, Score(1, 1, 1, 1, 1, 1)),
    ],
)
def test_by_hand(answer, gold, expected):
    found = score(answer, gold)
    for name in METRICS:
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


@given(NAMES, NAMES.filter(bool))
def test_what_always_holds(answer, gold):
    found = score(answer, gold)
    assert all(0 <= getattr(found, name) <= 1 for name in METRICS if name != "tables")
    total = found.precision + found.recall
    harmonic = 2 * found.precision * found.recall / total if total else 0
    assert found.f1 == pytest.approx(harmonic)
    assert (found.perfect_recall == 1) == (found.recall == 1)
    assert (found.exact_match == 1) == (found.f1 == 1) == (answer == gold)


def test_f1_is_averaged_over_questions_not_computed_of_averages():
    means = mean([score(["a.t"], {"a.t"}), score(["b.t"], {"a.t"})])
    assert means is not None
    assert (means.questions, means.precision, means.recall, means.f1) == (2, 0.5, 0.5, 0.5)
    means = mean([score(["a.t"], {"a.t", "a.u"}), score(["a.t", "a.u"], {"a.t"})])
    assert means is not None
    assert means.f1 == pytest.approx(2 / 3)
    assert means.precision == means.recall == 0.75
    assert means.tables == 1.5


def test_no_question_has_no_mean():
    assert mean([]) is None
