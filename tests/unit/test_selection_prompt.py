"""Selection by a chat model: what it is shown, and what is taken of its answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coret_pg.online.result import Candidate, Pair
from coret_pg.online.selection import (
    Unusable,
    answer_schema,
    build_prompt,
    label,
    parse_answer,
)


def candidate(rank: int, name: str) -> Candidate:
    return Candidate(rank, 100 + rank, "db", name, 0.5)


CANDIDATES = [
    candidate(1, "Singer"),
    candidate(2, "concert"),
    candidate(3, "singer"),
    candidate(4, "a.b"),
]
LABELS = label(CANDIDATES)


def test_labels_are_table_names_numbered_where_two_share_one() -> None:
    assert LABELS == {101: "Singer#1", 102: "concert", 103: "singer#3", 104: "a.b"}


def test_the_prompt_holds_tables_joins_and_the_question_last() -> None:
    pairs = [
        Pair(101, 102, ["id"], ["singer_id"], 0.75, "1:N"),
        Pair(101, 999, ["x"], ["y"], 0.9, "1:1"),
    ]
    prompt = build_prompt(
        "Who sang?", LABELS, {101: "### Singer#1\nSingers.\n| id |\n| --- |\n| 7 |"}, pairs
    )
    assert "### Singer#1\nSingers.\n| id |\n| --- |\n| 7 |" in prompt
    assert "- Singer#1.id = concert.singer_id (0.75)" in prompt
    assert "0.90" not in prompt
    assert "db" not in prompt
    assert prompt.endswith("### Question\nWho sang?")


def test_the_schema_allows_the_candidates_alone() -> None:
    items = answer_schema(list(LABELS.values()))["properties"]["tables"]["items"]
    assert items["enum"] == ["Singer#1", "concert", "singer#3", "a.b"]


@pytest.mark.parametrize(
    ("text", "chosen", "unknown"),
    [
        ('{"tables": ["concert", "Singer#1"]}', [101, 102], []),
        ('```json\n{"tables": ["CONCERT"]}\n```', [102], []),
        ('I think {"tables": ["a.b"]} hm, no: {"tables": ["concert"]}.', [102], []),
        ('{"tables": ["db.concert", "`singer#3`", "\\"a.b\\""]}', [102, 103, 104], []),
        ('{"tables": ["concert", "venue"]}', [102], ["venue"]),
        ('{"tables": []}', [], []),
        ('{"tables": ["concert", "concert"]}', [102], []),
    ],
)
def test_answers_that_can_be_used(text: str, chosen: list[int], unknown: list[str]) -> None:
    assert parse_answer(text, LABELS) == (chosen, unknown)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "concert",
        '{"tables": "concert"}',
        '{"tables": [1]}',
        '{"tables": ["venue"]}',
        '{"tables": ["con',
    ],
)
def test_answers_that_cant_be_used(text: str) -> None:
    with pytest.raises(Unusable):
        parse_answer(text, LABELS)


@given(st.text() | st.lists(st.text() | st.integers()).map(lambda x: json.dumps({"tables": x})))
def test_no_answer_ever_names_a_table_outside_the_list(text: str) -> None:
    try:
        chosen, _ = parse_answer(text, LABELS)
    except Unusable:
        return
    assert set(chosen) <= set(LABELS)
