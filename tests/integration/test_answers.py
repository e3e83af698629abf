"""A question in, joinable tables out: the whole path on the demo warehouse."""

from __future__ import annotations

from coret_pg import Coret


def test_a_question_brings_the_tables_and_their_joins(demo_dsn: str) -> None:
    with Coret(demo_dsn) as coret:
        answer = coret.retrieve("Which teachers teach physics?")
    assert {"school.teachers", "school.courses"} <= set(answer.table_names)
    print(answer)
