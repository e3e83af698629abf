"""Where the boxes of a join graph stand: joined tables in columns from left to right.

Each connected part is drawn by itself, its best connected table first and the others by their
distance from it; within a column boxes are ordered so that few joins cross (the barycenter
method), and moved up or down towards what they join. Tables without joins stand in rows below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple
from unicodedata import combining, east_asian_width

from coret_pg.pictures.graph import Picture, PictureTable

CHARACTER = 7.4
ROW = 20.0
HEAD = 26.0
PADDING = 12.0
_GAP_X = 150.0
_GAP_Y = 26.0
# What joins within the last column of boxes need at its right.
_SWING = 110.0
_MARGIN = 24.0
_SWEEPS = 8
_LEAST_WIDTH = 900.0


@dataclass(frozen=True)
class Box:
    """A table's place: its upper left corner and its size, in pixels."""

    table: PictureTable
    x: float
    y: float
    width: float
    height: float
    layer: int

    def row_y(self, column: str) -> float:
        """Return the height of a column's middle, or of the head where it isn't shown."""
        return self.y + _row_offset(self.table, column)


@dataclass(frozen=True)
class _Link:
    """A join of a table, seen from it."""

    own_column: str
    other: str
    other_column: str


_Links = Mapping[str, Sequence[_Link]]


class _Part(NamedTuple):
    """Boxes that stay together, from 0, 0 on, and the room they need."""

    boxes: Sequence[Box]
    width: float
    height: float


def lay_out(picture: Picture) -> tuple[dict[str, Box], float, float]:
    """Return each table's box by its name, and the width and height of the whole."""
    tables = {table.name: table for table in picture.tables}
    links: dict[str, list[_Link]] = defaultdict(list)
    for join in picture.joins:
        for left, right in zip(join.left_columns, join.right_columns, strict=True):
            links[join.left].append(_Link(left, join.right, right))
            links[join.right].append(_Link(right, join.left, left))
    parts = [_arranged(layers, tables, links) for layers in _parts(list(tables), links)]
    alone = [
        _Part([Box(table, 0, 0, *_size(table), 0)], *_size(table))
        for table in picture.tables
        if table.name not in links
    ]
    area = sum(part.width * part.height for part in parts)
    most = max([_LEAST_WIDTH, sqrt(2 * area), *(part.width for part in parts)])
    joined = _shelved(parts, most, 2 * _GAP_Y)
    rest = _shelved(alone, most, _GAP_Y)
    down = joined.height + 2 * _GAP_Y if parts else 0.0
    boxes = [*joined.boxes, *(replace(box, y=box.y + down) for box in rest.boxes)]
    placed = {box.table.name: replace(box, x=box.x + _MARGIN, y=box.y + _MARGIN) for box in boxes}
    height = down + rest.height if alone else joined.height
    return placed, max(joined.width, rest.width) + 2 * _MARGIN, height + 2 * _MARGIN


def _parts(names: Sequence[str], links: _Links) -> list[list[list[str]]]:
    """Return the connected parts with joins, largest first, each as layers of names."""
    neighbours = {name: {link.other for link in links.get(name, ())} for name in names}
    parts = []
    seen: set[str] = set()
    for start in sorted(names, key=lambda name: (-len(neighbours[name]), name)):
        if start in seen or not neighbours[start]:
            continue
        layers = [[start]]
        seen.add(start)
        while layers[-1]:
            found = sorted({n for name in layers[-1] for n in neighbours[name]} - seen)
            seen.update(found)
            layers.append(found)
        parts.append(layers[:-1])
    return sorted(parts, key=lambda layers: -sum(map(len, layers)))


def _arranged(layers: list[list[str]], tables: Mapping[str, PictureTable], links: _Links) -> _Part:
    """Give the tables of a part their boxes."""
    boxes: dict[str, Box] = {}
    x = 0.0
    for number, layer in enumerate(layers):
        # All of a column are equally wide: what leaves one doesn't run behind a wider one.
        width = max(_size(tables[name])[0] for name in layer)
        y = 0.0
        for name in layer:
            height = _size(tables[name])[1]
            boxes[name] = Box(tables[name], x, y, width, height, number)
            y += height + _GAP_Y
        x += width + _GAP_X
    forth, back = range(1, len(layers)), range(len(layers) - 2, -1, -1)
    for order in (True, False):
        for sweep in range(_SWEEPS):
            for number in back if sweep % 2 else forth:
                beside = number + (1 if sweep % 2 else -1)
                wanted = {name: _wanted_y(boxes[name], beside, boxes, links[name])
                          for name in layers[number]}  # fmt: skip
                if order:
                    layers[number].sort(key=wanted.__getitem__)
                _move([boxes[name] for name in layers[number]], wanted, boxes)
    top = min(box.y for box in boxes.values())
    bottom = max(box.y + box.height for box in boxes.values())
    last = layers[-1]
    swings = any(link.other in last for name in last for link in links[name])
    width = x - _GAP_X + (_SWING if swings else 0)
    return _Part([replace(box, y=box.y - top) for box in boxes.values()], width, bottom - top)


def _wanted_y(box: Box, layer: int, boxes: Mapping[str, Box], links: Sequence[_Link]) -> float:
    """Return where a box's joins to a layer would be level on the average."""
    places = [
        boxes[link.other].row_y(link.other_column) - _row_offset(box.table, link.own_column)
        for link in links
        if boxes[link.other].layer == layer
    ]
    return sum(places) / len(places) if places else box.y


def _move(column: Sequence[Box], wanted: Mapping[str, float], boxes: dict[str, Box]) -> None:
    """Move a column's boxes as near as can be to where each is wanted, in their order.

    That is least squares with an order to keep; groups that would overlap are pooled.
    """
    groups: list[tuple[float, int]] = []  # the mean of what its boxes want, and how many they are
    offsets = [0.0]
    for box in column:
        mean, count = wanted[box.table.name] - offsets[-1], 1
        while groups and groups[-1][0] >= mean:
            before, number = groups.pop()
            mean = (mean * count + before * number) / (count + number)
            count += number
        groups.append((mean, count))
        offsets.append(offsets[-1] + box.height + _GAP_Y)
    tops = [mean for mean, count in groups for _ in range(count)]
    for box, top, offset in zip(column, tops, offsets[:-1], strict=True):
        boxes[box.table.name] = replace(box, y=top + offset)


def _shelved(parts: Sequence[_Part], most: float, gap: float) -> _Part:
    """Set parts side by side in rows that are `most` wide at most."""
    boxes: list[Box] = []
    x, y, tallest, widest = 0.0, 0.0, 0.0, 0.0
    for part in parts:
        if x and x + part.width > most:
            x, y, tallest = 0.0, y + tallest + gap, 0.0
        boxes += [replace(box, x=box.x + x, y=box.y + y) for box in part.boxes]
        widest = max(widest, x + part.width)
        tallest = max(tallest, part.height)
        x += part.width + 2 * gap
    return _Part(boxes, widest, y + tallest)


def _size(table: PictureTable) -> tuple[float, float]:
    longest = max(_cells(text) for text in (table.name, *table.columns))
    return 2 * PADDING + CHARACTER * longest, HEAD + ROW * len(table.columns)


def _cells(text: str) -> int:
    """Return how many cells of a monospaced font a text takes; Chinese characters take two."""
    return sum(2 if east_asian_width(c) in "WF" else not combining(c) for c in text)


def _row_offset(table: PictureTable, column: str) -> float:
    if column not in table.columns:
        return HEAD / 2
    return HEAD + ROW * (table.columns.index(column) + 0.5)
