"""Join graphs drawn: what is in the pictures, and that any name can stand in one."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    "direction TB",
    r"\N",
    "__init__",
    "",
    "\x00\ud800\ufffe",
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


def shown(text):
    return "".join(c if c.isprintable() else " " for c in text)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=5, unique=True))
def test_names_are_read_back_as_they_are(names):
    joins = tuple(PictureJoin(a, (b,), b, (a,), "1:N", 0.5, True) for a, b in pairwise(names))
    whole = Picture("t", tuple(PictureTable(name, (name,)) for name in names), joins)
    quoted = re.findall(r't\d+\["([^"]*)"\]', as_mermaid(whole))
    decoded = [re.sub(r"#(\d+);", lambda m: chr(int(m[1])), text) for text in quoted]
    assert decoded == [shown(name).strip() or "?" for name in names]
    bold = [html.unescape(text) for text in re.findall(r"<b>(.*?)</b>", as_dot(whole))]
    assert [text.replace("\\\\", "\\") for text in bold] == [shown(name) or " " for name in names]
    drawn = [
        t.text or "" for t in parsed(as_svg(whole)).iter(f"{SVG}text") if t.get("class") == "name"
    ]
    assert sorted(drawn) == sorted(map(shown, names))


def test_mermaid_takes_no_name_for_its_own_words():
    drawn = as_mermaid(
        picture(alone=["direction TB", "DIRECTION\tlr", "_id", "snake_case", "<b>&"])
    )
    assert drawn.splitlines()[1:] == [
        '    t1["direction#32;TB"]',
        '    t2["DIRECTION#32;lr"]',
        '    t3["#95;id"]',
        '    t4["snake_case"]',
        '    t5["#60;b#62;#38;"]',
    ]


def test_dot_replaces_nothing_in_names():
    drawn = as_dot(picture(join(r"\N", "&lt;", columns=("&lt;",))))
    assert r"<b>\\N</b>" in drawn
    assert 'label="N:1  &amp;lt; = &amp;lt; (0.93)"' in drawn


def test_a_join_of_several_columns_is_one_path_with_a_curve_each():
    keys = join("a.x", "a.y", columns=("k1", "k2"))
    whole = Picture("t", tuple(PictureTable(n, ("k1", "k2")) for n in ("a.x", "a.y")), (keys,))
    (path,) = parsed(as_svg(whole)).iter(f"{SVG}path")
    boxes, _, _ = lay_out(whole)
    starts = re.findall(r"M ([0-9.]+) ([0-9.]+)", path.get("d"))
    assert [float(y) for _, y in starts] == [boxes["a.x"].row_y(k) for k in ("k1", "k2")]


def test_joins_within_a_column_of_boxes_stay_in_the_picture_and_off_the_boxes():
    long = "s.b_" + "long_" * 12
    whole = picture(
        *(join("s.hub", name) for name in ("s.a", long, "s.c", "s.d")),
        join("s.a", "s.c"), join("s.a", "s.d"), join("s.hub", "s.hub", columns=("name",)),
    )  # fmt: skip
    boxes, width, _ = lay_out(whole)
    for path, drawn in zip(parsed(as_svg(whole)).iter(f"{SVG}path"), whole.joins, strict=True):
        left, right = boxes[drawn.left], boxes[drawn.right]
        x1, y1, out, _, _, _, x2, y2 = map(float, re.findall(r"[0-9.]+", path.get("d")))
        if left.layer == right.layer:
            edge = max(b.x + b.width for b in boxes.values() if b.layer == left.layer)
            assert x1 == pytest.approx(edge, abs=0.1)
            assert x2 == pytest.approx(edge, abs=0.1)
            assert out < width
            assert y1 != y2


def test_labels_of_joins_do_not_meet():
    names = ("ship_id", "bill_id", "home_id")
    joins = [
        PictureJoin("s.orders", (n,), "s.addresses", ("id",), "N:1", 0.93, True) for n in names
    ]
    tables = (PictureTable("s.orders", names), PictureTable("s.addresses", ("id",)))
    drawn = parsed(as_svg(Picture("t", tables, tuple(joins)))).iter(f"{SVG}text")
    places = [
        (float(t.get("x")), float(t.get("y")))
        for t in drawn
        if t.text == "0.93" and t.get("class") == "label"
    ]
    assert len(places) == len(joins)
    assert all(abs(a[0] - b[0]) >= 24 or abs(a[1] - b[1]) >= 10 for a, b in combinations(places, 2))


def test_wide_characters_have_room():
    narrow, wide = (lay_out(picture(alone=[name]))[0][name].width for name in ("a" * 20, "日" * 20))
    assert wide > 1.8 * narrow


def test_pictures_are_the_same_whatever_the_hash_seed():
    program = """
import random
from coret_pg.pictures import *
r = random.Random(7)
tables = tuple(PictureTable(f"t{n}", ("a", "b")) for n in range(40))
for _ in range(40):
    joins = tuple(
        PictureJoin(f"t{r.randrange(40)}", ("a",), f"t{r.randrange(40)}", ("b",), "N:1", 0.5, True)
        for _ in range(80)
    )
    for draw in (as_mermaid, as_dot, as_svg):
        print(draw(Picture("t", tables, joins)))
"""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True,
        ).stdout
        for seed in ("1", "2")
    )  # fmt: skip
    assert first
    assert first == second


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
