"""A join graph as a standalone SVG, drawn without Graphviz."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from xml.sax.saxutils import escape

from coret_pg.pictures.graph import Picture, PictureJoin
from coret_pg.pictures.layout import HEAD, PADDING, ROW, Box, lay_out

# A label has a rim in the colour of the ground: it can be read where lines run below it. The rim is
# a text of its own, since not every program knows paint-order.
_STYLE = """
    text { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2933; }
    .name { font-weight: bold; fill: #ffffff; }
    .head { fill: #33608c; stroke: #33608c; }
    .box { fill: #f7f9fb; stroke: #33608c; }
    .join { fill: none; stroke: #7b8794; stroke-width: 1.5; }
    .inferred { stroke-dasharray: 6 4; }
    .label, .rim { font-size: 10px; fill: #3e4c59; text-anchor: middle; }
    .rim { fill: #ffffff; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
    .ground { fill: #ffffff; }
    @media (prefers-color-scheme: dark) {
        text { fill: #e4e7eb; }
        .box { fill: #1f2933; stroke: #33608c; }
        .join { stroke: #9aa5b1; }
        .label { fill: #cbd2d9; }
        .rim { fill: #12181f; stroke: #12181f; }
        .ground { fill: #12181f; }
    }
"""
# A join within a column of boxes swings out to the right, the further the longer it is.
_BEND, _BEND_PER_PIXEL, _MOST_BEND = 40.0, 0.12, 125.0
_CORNER = 4
# Where on its way a join's confidence may stand: the first place that no other label has taken.
_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73, 0.2, 0.8)
_LABEL_WIDTH, _LABEL_HEIGHT = 28.0, 12.0
# Further joins of the same two tables run a little beside the ones before.
_SHIFTS = (0, 4, -4, 8, -8)

_Curve = tuple[tuple[float, float], ...]


def as_svg(picture: Picture) -> str:
    """Return the text of an SVG: boxes with columns, joins from column to column."""
    boxes, width, height = lay_out(picture)
    drawn: Counter[frozenset[str]] = Counter()
    parts = []
    curves = []
    for join in picture.joins:
        ends = frozenset((join.left, join.right))
        curves.append(list(_curves(join, boxes[join.left], boxes[join.right], drawn[ends])))
        parts.append(_path(join, curves[-1]))
        drawn[ends] += 1
    parts += [_box(box) for box in boxes.values()]
    parts += _labels(picture, curves, boxes)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} '
            f'{height:.0f}" width="{width:.0f}" height="{height:.0f}">',
            f"<title>{_text(picture.title)}</title>",
            f"<style>{_STYLE}</style>",
            '<rect class="ground" width="100%" height="100%"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _box(box: Box) -> str:
    size = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}"'
    lines = [
        f'<g><rect class="box" {size} height="{box.height:.1f}" rx="{_CORNER}"/>',
        f'<rect class="head" {size} height="{HEAD:.1f}" rx="{_CORNER}"/>',
        _words("name", box.x + PADDING, box.y + 17, box.table.name),
    ]
    if box.table.columns:
        # Squares the head's lower corners.
        low = f'x="{box.x:.1f}" y="{box.y + HEAD - _CORNER:.1f}" width="{box.width:.1f}"'
        lines.insert(2, f'<rect class="head" {low} height="{_CORNER}"/>')
    lines += [
        _words("column", box.x + PADDING, box.y + HEAD + ROW * number + 14, column)
        for number, column in enumerate(box.table.columns)
    ]
    return "\n".join([*lines, "</g>"])


def _curves(join: PictureJoin, left: Box, right: Box, before: int) -> Iterator[_Curve]:
    """Yield a curve for each pair of columns: the four points of a cubic Bézier, left to right.

    `before`: how many joins of the same two tables are drawn already.
    """
    shift = _SHIFTS[before % len(_SHIFTS)]
    for left_column, right_column in zip(join.left_columns, join.right_columns, strict=True):
        start, start_y = left, left.row_y(left_column) + shift
        end, end_y = right, right.row_y(right_column) + shift
        if start.layer == end.layer:
            x = start.x + start.width
            if start_y == end_y:
                end_y += 8
            bend = _BEND + _BEND_PER_PIXEL * abs(start_y - end_y) + 14 * before
            out = x + min(bend, _MOST_BEND)
            yield (x, start_y), (out, start_y), (out, end_y), (x, end_y)
            continue
        if start.layer > end.layer:
            start, start_y, end, end_y = end, end_y, start, start_y
        x1, x2 = start.x + start.width, end.x
        middle = (x1 + x2) / 2
        yield (x1, start_y), (middle, start_y), (middle, end_y), (x2, end_y)


def _path(join: PictureJoin, curves: list[_Curve]) -> str:
    css = "join inferred" if join.is_inferred else "join"
    ways = (
        "M {:.1f} {:.1f} C {:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}".format(*sum(curve, ()))
        for curve in curves
    )
    hint = _text(f"{join.left} {join.cardinality} {join.right}: {join.label}")
    return f'<path class="{css}" d="{" ".join(ways)}"><title>{hint}</title></path>'


def _labels(picture: Picture, curves: list[list[_Curve]], boxes: dict[str, Box]) -> Iterator[str]:
    """Yield the labels: at a join's ends its cardinality, said once where joins meet."""
    at_ends: dict[tuple[float, float], dict[str, None]] = {}
    taken: list[tuple[float, float]] = []
    for join, ways in zip(picture.joins, curves, strict=True):
        first, last = ways[0][0], ways[0][-1]
        left, right = boxes[join.left], boxes[join.right]
        swapped = left.layer > right.layer
        many, one = join.cardinality[0], join.cardinality[-1]
        for (x, _), box, column, text in (
            (last if swapped else first, left, join.left_columns[0], many),
            (first if swapped else last, right, join.right_columns[0], one),
        ):
            place = (x + (8 if x > box.x else -8), box.row_y(column) - 4)
            at_ends.setdefault(place, {})[text] = None
    for (x, y), texts in at_ends.items():
        taken.append((x, y))
        yield from _label(x, y, ",".join(sorted(texts)))
    for join, ways in zip(picture.joins, curves, strict=True):
        spots = [_on_curve(ways[0], place) for place in _PLACES]
        x, y = next((spot for spot in spots if _is_free(spot, taken)), spots[0])
        taken.append((x, y))
        yield from _label(x, y, f"{join.confidence:.2f}")


def _label(x: float, y: float, text: str) -> Iterator[str]:
    yield _words("rim", x, y, text)
    yield _words("label", x, y, text)


def _is_free(spot: tuple[float, float], taken: list[tuple[float, float]]) -> bool:
    return not any(
        abs(spot[0] - x) < _LABEL_WIDTH and abs(spot[1] - y) < _LABEL_HEIGHT for x, y in taken
    )


def _on_curve(curve: _Curve, t: float) -> tuple[float, float]:
    """Return where a label's foot stands, t of the way along a cubic Bézier curve."""
    s = 1 - t
    weights = (s**3, 3 * s * s * t, 3 * s * t * t, t**3)
    x, y = (sum(w * p[axis] for w, p in zip(weights, curve, strict=True)) for axis in (0, 1))
    return x, y + 3


def _words(css: str, x: float, y: float, text: str) -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}">{_text(text)}</text>'


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() else " " for c in text))
