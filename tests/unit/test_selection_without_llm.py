"""Selection without a chat model: words, names, values, joins and the choice, without a database."""

import numpy as np
import pytest

from coret_pg.join_names import table_words
from coret_pg.offline.profile import phrases_of
from coret_pg.online.join_graph import scored, spanning_joins
from coret_pg.online.question_words import (
    COLUMN,
    KEY_COLUMN,
    PART_OF_NAME,
    VALUE,
    WHOLE_NAME,
    NamedTable,
    QuestionWords,
    weigh_values,
)
from coret_pg.online.result import Candidate, Pair
from coret_pg.online.selection_without_llm import LARGEST_SET, choose, strength_matrix
from coret_pg.words import name_words, plain_text, root, stem


def chosen(relevances, coverage, joins=()):
    strengths = np.zeros((len(relevances), len(relevances)), dtype=np.float32)
    for a, b, strength in joins:
        strengths[a, b] = strengths[b, a] = strength
    return choose(relevances, np.array(coverage, dtype=np.float32), strengths)


# --- words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("StuID", ("stu", "id")),
        ("stu_id", ("stu", "id")),
        ("custid", ("cust", "id")),
        ("order lines", ("order", "line")),
        ("HTTPCode", ("http", "code")),
        ("is_paid", ("is", "paid")),
        ("lieferverträge", ("lieferverträge",)),
        ("___", ()),
    ],
)
def test_names_become_words(name, words):
    assert name_words(name) == words


def test_plurals_and_endings():
    assert [stem(w) for w in ("cities", "classes", "status", "glass", "bus", "teachers")] == [
        "city", "class", "status", "glass", "bus", "teacher",
    ]  # fmt: skip
    assert root("shipped") == root("shipment") == root("shipments") == "ship"
    assert root("diagnosed") == root("diagnoses")
    assert root("id") == "id"


def test_texts_are_compared_as_words():
    assert plain_text("  Anti-Virus\n (New) ") == "anti virus new"
    assert phrases_of(["Asthma", "asthma ", "1", "12 34", "", "-", "Type 2", "new York city"]) == [
        "asthma", "new york", "new york city", "type 2",
    ]  # fmt: skip


# --- what the question's words point to


def test_phrases_leave_out_what_tells_nothing():
    spellings = {
        s for p in QuestionWords("How many of the 12 ad cats").phrases for s in p.spellings
    }
    assert {"cats", "cat", "12 ad cats", "ad cats"} <= spellings
    assert not {"how", "how many", "12", "ad", "the"} & spellings
    assert QuestionWords("").phrases == QuestionWords("?! of the").phrases == []


def test_a_value_of_few_tables_weighs_more():
    phrases = QuestionWords("asthma patients in Leipzig").phrases
    found = {"asthma": [1], "leipzig": list(range(10)), "patients in": []}
    weights = {
        v.phrase.spellings[0]: v.weight for v in weigh_values(phrases, found, pool_tables=100)
    }
    assert weights == {"asthma": 1.0, "leipzig": pytest.approx(0.5)}
    assert weigh_values(phrases, {"asthma": [1]}, pool_tables=0)[0].weight == 1.0


def test_coverage_by_names_and_values():
    words = QuestionWords("Which students order lunch with asthma")
    tables = [
        NamedTable(1, "students", ["first_name"]),
        NamedTable(2, "student_rooms", ["order_text"]),
        NamedTable(3, "meals", ["student_id", "lunch"]),
        NamedTable(4, "diagnoses", []),
    ]
    values = weigh_values(words.phrases, {"asthma": [4]}, pool_tables=4)
    covered = words.coverage(tables, values)
    place = {word: number for number, word in enumerate(words.words)}
    assert covered[0, place["students"]] == pytest.approx(WHOLE_NAME)
    assert covered[1, place["students"]] == pytest.approx(PART_OF_NAME)
    assert covered[1, place["order"]] == pytest.approx(COLUMN)
    assert covered[2, place["students"]] == pytest.approx(KEY_COLUMN)
    assert covered[3, place["asthma"]] == pytest.approx(VALUE)
    assert not covered[:, place["which"]].any()
    assert covered[3].sum() == pytest.approx(VALUE)


def test_a_name_is_wholly_in_a_question():
    words = QuestionWords("What do the order lines cost?")
    assert words.names_wholly(table_words("tbl_order_line"))
    assert not words.names_wholly(table_words("order_line_archive"))
    assert not words.names_wholly(("the",))


# --- the joins among candidates


def test_confidence_comes_before_score_in_the_answers_joins():
    by_chance = Pair(1, 2, ["line"], ["id"], 0.9, "1:1")
    meant = Pair(1, 2, ["order_id"], ["id"], 0.0, "N:1", 0.7)
    joins, is_connected = spanning_joins([1, 2], scored([by_chance, meant]))
    assert is_connected
    # The score is that of the two tables, whichever columns it came from.
    assert joins == [Pair(1, 2, ["order_id"], ["id"], 0.9, "N:1", 0.7)]


def test_the_strength_matrix_is_symmetric():
    pairs = [Pair(7, 5, ["a"], ["b"], 0.1, "1:1", 0.36)]
    matrix = strength_matrix([5, 6, 7], pairs)
    assert matrix[0, 2] == matrix[2, 0] == pytest.approx(0.6)
    assert matrix.sum() == pytest.approx(1.2)


# --- the choice


def test_no_candidate_and_no_word():
    assert chosen([], np.zeros((0, 3))) == []
    assert chosen([0.5, 0.4], np.zeros((2, 0))) == [0]


def test_the_nearest_is_enough_when_it_covers_everything():
    assert chosen([0.5, 0.49, 0.48], [[1, 1], [1, 0], [0, 1]], [(0, 1, 1.0), (0, 2, 1.0)]) == [0]


def test_a_joined_table_that_covers_a_word_comes_in():
    assert chosen([0.5, 0.2], [[1, 0], [0, 0.8]], [(0, 1, 1.0)]) == [0, 1]


def test_a_table_of_another_domain_stays_out():
    assert chosen([0.5, 0.45], [[1, 0], [0, 0.8]]) == [0]


def test_a_bridge_comes_in_for_the_two_it_connects():
    coverage = [[1, 0], [0, 1], [0, 0]]
    assert chosen([0.5, 0.4, 0.2], coverage) == [0, 1]
    assert chosen([0.5, 0.4, 0.2], coverage, [(0, 2, 1.0), (1, 2, 1.0)]) == [0, 1, 2]


def test_the_more_believable_domain_wins():
    # Two tables alike: the one that joins what the question needs is taken.
    coverage = [[1, 0], [1, 0], [0, 1]]
    assert chosen([0.50, 0.48, 0.45], coverage, [(1, 2, 1.0)]) == [1, 2]


def test_equal_sets_give_the_nearer_one_always():
    assert chosen([0.5, 0.5, 0.5], np.ones((3, 2))) == [0]


def test_sets_stay_small():
    count = 8
    joins = [(a, b, 1.0) for a in range(count) for b in range(a)]
    assert len(chosen([0.5] * count, np.eye(count), joins)) == LARGEST_SET


def test_candidates_know_their_names():
    assert Candidate(1, 1, "s", "t", 0.5).name == "s.t"
