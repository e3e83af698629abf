"""The texts made of a table: purpose, embedded text, schema slice."""

from __future__ import annotations

import pytest

from coret_pg.offline.embedding import TableText, embedding_text, header_text
from coret_pg.offline.purpose import ColumnFacts, TableFacts, compose_purpose, plain_words
from coret_pg.online.result import Join
from coret_pg.online.schema_slice import SliceColumn, render_slice


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("StuID", "Stu ID"),
        ("order_line", "order line"),
        ("Has_Pet", "Has Pet"),
        ("HTTPServer", "HTTP Server"),
        ("Leave Requests", "Leave Requests"),
        ("lieferverträge", "lieferverträge"),
        ("___", ""),
    ],
)
def test_names_read_as_words(name: str, words: str) -> None:
    assert plain_words(name) == words


def test_a_composed_purpose_starts_with_what_people_wrote() -> None:
    facts = TableFacts("order_line", "What was bought.", None, "")
    columns = [
        ColumnFacts("line_id", "integer", None, True),
        ColumnFacts("prod_cd", "text", "SKU of the product", False),
    ]
    assert compose_purpose(facts, columns) == (
        "What was bought. order line with line id, prod cd. One row for each line id. "
        "prod cd: SKU of the product."
    )
    assert compose_purpose(TableFacts("t", None, None, ""), []) == "t."


def test_embedded_texts() -> None:
    def table(purpose: str, made_by: str, comments: str | None = None) -> TableText:
        return TableText(
            1, "order_line", ["line_id", "prodCd"], comments, purpose, made_by, "| x |"
        )

    names = "order line: line id, prod Cd"
    assert embedding_text(table("composed words", "composed"), "names") == names
    assert embedding_text(table("p", "composed", "A comment"), "names") == f"{names}\nA comment"
    assert embedding_text(table("Bought goods.", "llm"), "names") == f"{names}\nBought goods."
    assert embedding_text(table("Bought.", "llm"), "paper") == "order line.\nBought.\n| x |"
    assert header_text("order_line", "prodCd") == "order line prod Cd"


def column(name: str, **more: object) -> SliceColumn:
    facts: dict[str, object] = {
        "table_id": 1, "table_name": "shop.orders", "purpose": "Orders.", "primary_key": ["id"],
        "column_name": name, "type_name": "bigint", "is_not_null": False, "column_comment": None,
        "frequent_values": None, "is_there": True,
    }  # fmt: skip
    return SliceColumn(**(facts | more))  # type: ignore[arg-type]


def test_a_slice_is_create_table_text_with_joins() -> None:
    columns = [
        column("id", is_not_null=True),
        column(
            "note", type_name="text", column_comment="free\ntext", frequent_values=["it's", "a\nb"]
        ),
    ]
    join = Join("shop.orders", ["id"], "shop.lines", ["order_id"], "1:N", 0.9, "inferred", 0.8)
    assert render_slice(columns, [1, 2], [join]) == (
        "-- Orders.\n"
        "CREATE TABLE shop.orders (\n"
        "    id bigint NOT NULL,\n"
        "    note text,  -- free text; e.g. 'it''s', 'a b'\n"
        "    PRIMARY KEY (id)\n"
        ");\n\n"
        "-- Joins\n"
        "-- shop.orders.id = shop.lines.order_id  (1:N, confidence 0.90)"
    )


def test_data_never_leaves_a_comment_line() -> None:
    hostile = "x\n); DROP TABLE users; --\r\u2028y"
    text = render_slice([column("id", purpose=hostile, column_comment=hostile)], [1], [])
    for line in text.splitlines():
        assert line.startswith(("--", "CREATE TABLE", "    ", ");"))
        if "DROP" in line:
            assert "--" in line.split("DROP")[0]
