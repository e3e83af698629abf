"""Questions are read whole, or refused with the file and the line that is wrong."""

import json

import pytest

from coret_pg.errors import EvaluationError
from coret_pg.evaluation import POOLS, load_cases

GOOD = {"id": "q1", "question": " How many? ", "gold_tables": ["Shop.Orders", "shop.items"]}


@pytest.fixture
def own(tmp_path):
    """Write lines (objects as JSON) to a file of one's own; return its cases."""

    def read(*lines):
        file = tmp_path / "questions.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        file.write_bytes("\n".join(texts).encode("utf-8", "surrogateescape"))
        return load_cases(file, "own")

    return read


def test_names_are_lower_case_and_the_question_is_trimmed(own):
    (case,) = own(GOOD)
    assert (case.id, case.question) == ("q1", "How many?")
    assert case.gold_tables == {"shop.orders", "shop.items"}
    assert case.is_multi_table


def test_a_table_named_twice_counts_once(own):
    (case,) = own(GOOD | {"gold_tables": ["a.T", "a.t"]})
    assert not case.is_multi_table


def test_an_id_is_optional_and_may_be_a_number(own):
    without = {key: value for key, value in GOOD.items() if key != "id"}
    assert [case.id for case in own(GOOD | {"id": 7}, "", without)] == ["7", "line-3"]


def test_other_keys_blank_lines_and_a_byte_order_mark_are_no_matter(own):
    bom = "\ufeff" + json.dumps(GOOD | {"db_id": "shop", "gold_sql": "SELECT 1"}) + "\r"
    assert len(own(bom, "", "  \r", GOOD | {"id": "q2"}, "")) == 2


def test_only_a_line_feed_ends_a_line(own):
    line = json.dumps(GOOD | {"question": "a\u2028b\x85c"}, ensure_ascii=False)
    (case,) = own(line)
    assert case.question == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON"),
        ("\udcff", "no UTF-8"),
        ("[1]", "no JSON object"),
        ('"text"', "no JSON object"),
        ("[" * 100_000, "nested too deep"),
        ({"question": "x"}, "no gold_tables"),
        ({"id": "x"}, "no question and no gold_tables"),
        (GOOD | {"question": 3}, "question is no text"),
        (GOOD | {"question": " \n"}, "question is empty"),
        (GOOD | {"question": "x" * 9_000}, "9,000 characters"),
        (GOOD | {"gold_tables": []}, "no list of names, or an empty one"),
        (GOOD | {"gold_tables": "a.b"}, "no list of names"),
        (GOOD | {"gold_tables": ["orders"]}, "'orders', which is no schema.table"),
        (GOOD | {"gold_tables": [".orders"]}, "no schema.table"),
        (GOOD | {"gold_tables": [None]}, "None, which is no schema.table"),
        (GOOD | {"id": None}, "neither a text nor a whole number"),
        (GOOD | {"id": True}, "neither a text nor a whole number"),
        (GOOD | {"id": "q0"}, "that of line 1 too"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(own, line, reason):
    with pytest.raises(EvaluationError, match=r"questions\.jsonl, line 2: ") as caught:
        own(GOOD | {"id": "q0"}, line)
    assert reason in caught.value.what


def test_a_file_without_questions_is_refused(own):
    with pytest.raises(EvaluationError, match="holds no question"):
        own("", " ")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(EvaluationError, match=r"nothing\.jsonl can't be read: No such file"):
        load_cases(tmp_path / "nothing.jsonl", "own")
    with pytest.raises(EvaluationError, match="can't be read: Is a directory"):
        load_cases(tmp_path, "own")


@pytest.mark.parametrize("pool", ["spider-dev", "spider-open"])
def test_spider_is_found_in_the_folder_above_and_in_its_own(tmp_path, pool):
    spider = tmp_path / "spider"
    spider.mkdir()
    (spider / "questions_dev.jsonl").write_text(json.dumps(GOOD))
    assert load_cases(tmp_path, pool) == load_cases(spider, pool)


def test_a_wrong_folder_is_told_what_was_looked_for(tmp_path):
    with pytest.raises(EvaluationError) as caught:
        load_cases(tmp_path / "x", "spider-dev")
    assert str(tmp_path / "x" / "spider" / "questions_dev.jsonl") in caught.value.what
    assert str(tmp_path / "x" / "questions_dev.jsonl") in caught.value.what


@pytest.mark.parametrize("pool", ["spider-dev", "own"])
def test_a_dataset_has_to_be_given(pool):
    with pytest.raises(EvaluationError, match="--dataset"):
        load_cases(None, pool)


def test_an_unknown_pool_is_told_the_known_ones(tmp_path):
    with pytest.raises(EvaluationError) as caught:
        load_cases(tmp_path, "bird")
    assert all(pool in caught.value.remedy for pool in POOLS)


def test_the_demo_needs_no_dataset():
    cases = load_cases(None, "demo")
    assert len(cases) > 20
    assert len({case.id for case in cases}) == len(cases)
    assert any(case.is_multi_table for case in cases)
