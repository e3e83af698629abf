"""Methods that need no database: which candidates each reads, in which order they run."""

import pytest

from coret_pg.evaluation.methods import Asked, Method, all_methods, dense
from coret_pg.online.result import Candidate, Choice
from coret_pg.settings import Settings


class NoConnection:
    """Fails the test where a method asks the database after all."""


def asked(count=12, k=10, pairs=()):
    candidates = [
        Candidate(rank, 100 + rank, "s", f"t{rank}", 0.9 - rank / 100)
        for rank in range(1, count + 1)
    ]
    return Asked(NoConnection(), Settings(_env_file=None, k=k), "?", candidates, pairs, None)


def by_name(name):
    return next(method for method in all_methods(None) if method.name == name)


def test_without_a_chat_model():
    assert [method.name for method in all_methods(None)] == [
        "DR@3", "DR@5", "DR@10", "selection without LLM", "selection without LLM + adjustment",
        "selection without LLM + adjustment, single expanded",
    ]  # fmt: skip


def test_with_a_chat_model():
    names = [method.name for method in all_methods(object())]
    assert names[-3:] == [
        "selection by LLM",
        "selection by LLM + adjustment",
        "selection by LLM + adjustment, single expanded",
    ]
    assert len(names) == len(set(names)) == 9


@pytest.mark.parametrize("depth", [3, 5, 10])
def test_dense_takes_the_nearest_whatever_k_is(depth):
    found = asked(k=4).answer_of(dense(depth))
    assert found == [100 + rank for rank in range(1, depth + 1)]


def test_dense_takes_all_of_a_small_pool():
    assert asked(count=2).answer_of(dense(10)) == [101, 102]


def test_a_selection_gets_k_candidates_as_in_retrieve(monkeypatch):
    beside = Candidate(4, 999, "s", "t999", 0.1)

    def select(connection, question, vector, candidates):
        return Choice([candidates[-1].table_id, 999], [*candidates, beside])

    monkeypatch.setattr("coret_pg.evaluation.methods.select_without_llm", select)
    question = asked(count=12, k=3)
    assert question.answer_of(by_name("selection without LLM")) == [103, 999]
    assert question.beside == [beside]


def test_a_method_runs_once_a_question():
    runs = []
    method = Method("costly", lambda one: runs.append(one.question) or [101])
    question = asked()
    assert question.answer_of(method) == question.answer_of(method) == [101]
    assert runs == ["?"]
    assert question.seconds["costly"] >= 0
