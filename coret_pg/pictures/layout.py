"""Where the boxes of a join graph stand: joined tables in columns from left to right.

Each connected part is drawn by itself, its best connected table first and the others by their
distance from it; within a column boxes are ordered so that few joins cross (the barycenter
method). Tables without joins stand in rows below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coret_pg.pictures.graph import Picture, PictureTable

CHARACTER = 7.2
ROW = 20.0
HEAD = 26.0
_PADDING = 12.0
_GAP_X = 150.0
_GAP_Y = 26.0
_MARGIN = 24.0
_SWEEPS = 6


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
        if column not in self.table.columns:
            return self.y + HEAD / 2
        return self.y + HEAD + ROW * (self.table.columns.index(column) + 0.5)


def lay_out(picture: Picture) -> tuple[dict[str, Box], float, float]:
    """Return each table's box by its name, and the width and height of the whole."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for join in picture.joins:
        neighbours[join.left].add(join.right)
        neighbours[join.right].add(join.left)
    tables = {table.name: table for table in picture.tables}
    boxes: dict[str, Box] = {}
    y = _MARGIN
    for layers in _parts(list(tables), neighbours):
        y = _place(layers, tables, boxes, y)
    alone = [name for name in tables if name not in boxes]
    widest = max((box.x + box.width for box in boxes.values()), default=900.0)
    _place_alone([tables[name] for name in alone], boxes, y, max(widest, 600.0))
    width = max((box.x + box.width for box in boxes.values()), default=0.0) + _MARGIN
    height = max((box.y + box.height for box in boxes.values()), default=0.0) + _MARGIN
    return boxes, width, height


def _parts(names: Sequence[str], neighbours: Mapping[str, set[str]]) -> list[list[list[str]]]:
    """Return the connected parts of two tables or more, largest first, each as layers of names."""
    parts = []
    seen: set[str] = set()
    for start in sorted(names, key=lambda name: (-len(neighbours.get(name, ())), name)):
        if start in seen or not neighbours.get(start):
            continue
        layers = [[start]]
        seen.add(start)
        while layers[-1]:
            found = sorted({n for name in layers[-1] for n in neighbours[name]} - seen)
            seen.update(found)
            layers.append(found)
        parts.append(_untangled(layers[:-1], neighbours))
    return sorted(parts, key=lambda layers: -sum(map(len, layers)))


def _untangled(layers: list[list[str]], neighbours: Mapping[str, set[str]]) -> list[list[str]]:
    for sweep in range(_SWEEPS):
        numbers = range(1, len(layers))
        for number in numbers if sweep % 2 == 0 else reversed(range(len(layers) - 1)):
            beside = layers[number - 1 if sweep % 2 == 0 else number + 1]
            place = {name: position / max(1, len(beside)) for position, name in enumerate(beside)}

            def middle(name: str, place: Mapping[str, float] = place) -> float:
                places = [place[other] for other in neighbours[name] if other in place]
                return sum(places) / len(places) if places else 0.5

            layers[number] = sorted(layers[number], key=middle)
    return layers


def _place(
    layers: Sequence[Sequence[str]],
    tables: Mapping[str, PictureTable],
    boxes: dict[str, Box],
    top: float,
) -> float:
    """Give the tables of a part their boxes from `top` down; return where the next may begin."""
    sizes = {name: _size(tables[name]) for layer in layers for name in layer}
    heights = [
        sum(sizes[name][1] for name in layer) + _GAP_Y * (len(layer) - 1) for layer in layers
    ]
    x = _MARGIN
    for number, (layer, height) in enumerate(zip(layers, heights, strict=True)):
        y = top + (max(heights) - height) / 2
        for name in layer:
            boxes[name] = Box(tables[name], x, y, *sizes[name], number)
            y += sizes[name][1] + _GAP_Y
        x += max(sizes[name][0] for name in layer) + _GAP_X
    return top + max(heights) + 2 * _GAP_Y


def _place_alone(
    tables: Sequence[PictureTable], boxes: dict[str, Box], top: float, right: float
) -> None:
    x, y, tallest = _MARGIN, top, 0.0
    for table in tables:
        width, height = _size(table)
        if x > _MARGIN and x + width > right:
            x, y, tallest = _MARGIN, y + tallest + _GAP_Y, 0.0
        boxes[table.name] = Box(table, x, y, width, height, 0)
        x += width + _GAP_Y
        tallest = max(tallest, height)


def _size(table: PictureTable) -> tuple[float, float]:
    longest = max(len(text) for text in (table.name, *table.columns))
    return 2 * _PADDING + CHARACTER * longest, HEAD + ROW * len(table.columns)
