"""Join graphs drawn: what is in the pictures, and that any name can stand in one."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import pytest

from coret_pg.pictures import Picture, PictureJoin, PictureTable, as_dot, as_mermaid, as_svg
from coret_pg.pictures.layout import lay_out

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    'quote"s',
    "it's",
    "a.b.c",
    "new\nline",
    "<b>&amp;</b>",
    "back\\slash",
    "100%",
    "#quot;",
    "日本 ü",
    "`tick`",
    "]]>",
    "--",
]


def parsed(svg):
    # Our own text, not somebody's.
    return ET.fromstring(svg)  # noqa: S314


def join(left, right, *, columns=("id",), cardinality="N:1", inferred=True, confidence=0.93):
    return PictureJoin(left, columns, right, columns, cardinality, confidence, inferred)


def picture(*joins, alone=()):
    names = list(dict.fromkeys([n for j in joins for n in (j.left, j.right)] + list(alone)))
    return Picture("What joins?", tuple(PictureTable(n, ("id", "name")) for n in names), joins)


SHOP = picture(
    join("shop.orders", "shop.customers"),
    join("shop.lines", "shop.orders", inferred=False),
    join("shop.lines", "shop.products", columns=("a", "b"), cardinality="1:1"),
    join("shop.lines", "shop.products", cardinality="N:M", confidence=0.4),
    alone=["shop.notes"],
)


def test_mermaid():
    assert as_mermaid(SHOP).splitlines() == [
        "erDiagram",
        '    t1["shop.orders"]',
        '    t2["shop.customers"]',
        '    t3["shop.lines"]',
        '    t4["shop.products"]',
        '    t5["shop.notes"]',
        '    t1 }o..|| t2 : "id = id (0.93)"',
        '    t3 }o--|| t1 : "id = id (0.93)"',
        '    t3 |o..|| t4 : "a = a, b = b (0.93)"',
        '    t3 }o..o{ t4 : "id = id (0.40)"',
    ]


def test_dot():
    lines = as_dot(SHOP).splitlines()
    assert lines[0] == "digraph joins {"
    assert lines[-1] == "}"
    assert '    t1:c1 -> t2:c1 [style=dashed, label="N:1  id = id (0.93)"];' in lines
    assert '    t3:c1 -> t1:c1 [style=solid, label="N:1  id = id (0.93)"];' in lines
    # A column that isn't shown: the join ends at the box.
    assert '    t3 -> t4 [style=dashed, label="1:1  a = a, b = b (0.93)"];' in lines
    assert sum("->" in line for line in lines) == len(SHOP.joins)


def test_svg():
    drawn = parsed(as_svg(SHOP))
    assert drawn.get("role") == "img"
    assert drawn.findtext(f"{SVG}title") == "What joins?"
    names = [text.text for text in drawn.iter(f"{SVG}text") if text.get("class") == "name"]
    assert sorted(names) == sorted(table.name for table in SHOP.tables)
    paths = list(drawn.iter(f"{SVG}path"))
    assert ["inferred" in path.get("class") for path in paths] == [
        j.is_inferred for j in SHOP.joins
    ]
    # Two joins of the same tables are two curves.
    assert len({path.get("d") for path in paths}) == len(paths)


@pytest.mark.parametrize("draw", [as_mermaid, as_dot, as_svg])
def test_any_name_can_be_drawn(draw):
    joins = [PictureJoin(a, (b,), b, (a,), "N:1", 0.5, True) for a, b in pairwise(HOSTILE)]
    tables = tuple(PictureTable(name, (name, *HOSTILE[:3])) for name in HOSTILE)
    drawn = draw(Picture(" ".join(HOSTILE), tables, tuple(joins)))
    assert drawn == draw(Picture(" ".join(HOSTILE), tables, tuple(joins)))
    if draw is as_svg:
        texts = {text.text for text in parsed(drawn).iter(f"{SVG}text")}
        assert {"<b>&amp;</b>", "]]>", "new line"} <= texts
    elif draw is as_mermaid:
        # One line a table and a join; no quote ends a text early.
        assert len(drawn.splitlines()) == 1 + len(tables) + len(joins)
        assert all(line.count('"') == 2 for line in drawn.splitlines()[1:])
        assert not re.search(r"[%\\]", drawn)
    else:
        assert all(len(re.findall(r'(?<!\\)"', line)) % 2 == 0 for line in drawn.splitlines())


def test_boxes_never_overlap_and_joins_end_at_them():
    joins = [join(f"s.t{n}", f"s.t{n // 3}") for n in range(1, 60)]
    joins += [join(f"s.t{n}", f"s.t{n + 17}") for n in range(0, 40, 5)]
    joins += [join("other.a", "other.b")]
    whole = picture(*joins, alone=[f"alone.t{n}" for n in range(25)])
    boxes, width, height = lay_out(whole)
    assert boxes.keys() == {table.name for table in whole.tables}
    for a, b in combinations(boxes.values(), 2):
        assert (
            a.x + a.width <= b.x or b.x + b.width <= a.x
            or a.y + a.height <= b.y or b.y + b.height <= a.y
        ), (a.table.name, b.table.name)  # fmt: skip
    assert all(
        box.x + box.width <= width and box.y + box.height <= height for box in boxes.values()
    )
    sides = {
        (round(x, 1), box.table.name) for box in boxes.values() for x in (box.x, box.x + box.width)
    }
    for path, drawn in zip(parsed(as_svg(whole)).iter(f"{SVG}path"), joins, strict=True):
        numbers = [float(n) for n in re.findall(r"-?[0-9.]+", path.get("d"))]
        ends = {drawn.left, drawn.right}
        assert {name for x, name in sides if x in (numbers[0], numbers[6])} >= ends


def test_nothing_to_draw():
    empty = Picture("nothing", (), ())
    assert as_mermaid(empty) == "erDiagram\n"
    assert parsed(as_svg(empty)) is not None
    assert as_dot(empty).endswith("}\n")
