"""A join graph as a standalone SVG, drawn without Graphviz."""

from __future__ import annotations

from collections import Counter
from xml.sax.saxutils import escape

from coret_pg.pictures.graph import Picture, PictureJoin
from coret_pg.pictures.layout import HEAD, ROW, Box, lay_out

_STYLE = """
    text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2933; }
    .name { font-weight: bold; fill: #ffffff; }
    .head { fill: #33608c; }
    .box { fill: #f7f9fb; stroke: #33608c; }
    .join { fill: none; stroke: #7b8794; stroke-width: 1.5; }
    .inferred { stroke-dasharray: 6 4; }
    .label { font-size: 10px; fill: #52606d; text-anchor: middle; }
    .ground { fill: #ffffff; }
    @media (prefers-color-scheme: dark) {
        text { fill: #e4e7eb; }
        .box { fill: #1f2933; stroke: #7fa7cf; }
        .join { stroke: #9aa5b1; }
        .label { fill: #cbd2d9; }
        .ground { fill: #12181f; }
    }
"""
_BEND = 60.0
# Labels of neighbouring joins stand at different places of their ways, so that they rarely meet.
_PLACES = (0.4, 0.6, 0.5, 0.3, 0.7)


def as_svg(picture: Picture) -> str:
    """Return the text of an SVG: boxes with columns, joins from column to column."""
    boxes, width, height = lay_out(picture)
    drawn: Counter[frozenset[str]] = Counter()
    parts = []
    for number, join in enumerate(picture.joins):
        ends = frozenset((join.left, join.right))
        place = _PLACES[number % len(_PLACES)]
        parts.append(_join(join, boxes[join.left], boxes[join.right], drawn[ends], place))
        drawn[ends] += 1
    parts += [_box(box) for box in boxes.values()]
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
        f'<g><rect class="box" {size} height="{box.height:.1f}" rx="4"/>',
        f'<rect class="head" {size} height="{HEAD:.1f}" rx="4"/>',
        f'<text class="name" x="{box.x + 12:.1f}" y="{box.y + 17:.1f}">{_text(box.table.name)}'
        "</text>",
    ]
    lines += [
        f'<text x="{box.x + 12:.1f}" y="{box.y + HEAD + ROW * number + 14:.1f}">'
        f"{_text(column)}</text>"
        for number, column in enumerate(box.table.columns)
    ]
    return "\n".join([*lines, "</g>"])


def _join(join: PictureJoin, left: Box, right: Box, before: int, place: float) -> str:
    """Draw a join; `before`: how many of the same two tables are drawn already.

    `place`: where on its way the confidence stands, 0 to 1.
    """
    if left.x > right.x:
        left, right = right, left
        start_column, end_column = join.right_columns[0], join.left_columns[0]
        many, one = join.cardinality[2], join.cardinality[0]
    else:
        start_column, end_column = join.left_columns[0], join.right_columns[0]
        many, one = join.cardinality[0], join.cardinality[2]
    x1, y1, y2 = left.x + left.width, left.row_y(start_column), right.row_y(end_column)
    bend = _BEND + 14 * before
    if left.layer == right.layer:
        # Both in one column of boxes: out on the right side and back again.
        x2 = right.x + right.width
        control1, control2 = max(x1, x2) + bend, max(x1, x2) + bend
        end_sign = 1
    else:
        x2 = right.x
        control1, control2 = x1 + bend, x2 - bend
        end_sign = -1
    label_x = _on_curve(x1, control1, control2, x2, place)
    label_y = _on_curve(y1, y1, y2, y2, place) + 3
    css = "join inferred" if join.is_inferred else "join"
    curve = (
        f"M {x1:.1f} {y1:.1f} C {control1:.1f} {y1:.1f} {control2:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    )
    return "\n".join(
        [
            f'<g><path class="{css}" d="{curve}"><title>{_text(_hint(join))}</title></path>',
            _label(x1 + 8, y1 - 4, many),
            _label(x2 + 8 * end_sign, y2 - 4, one),
            _label(label_x, label_y, f"{join.confidence:.2f}"),
            "</g>",
        ]
    )


def _on_curve(start: float, control1: float, control2: float, end: float, t: float) -> float:
    """Return a coordinate of a cubic Bézier curve at t."""
    s = 1 - t
    return s**3 * start + 3 * s * s * t * control1 + 3 * s * t * t * control2 + t**3 * end


def _label(x: float, y: float, text: str) -> str:
    return f'<text class="label" x="{x:.1f}" y="{y:.1f}">{text}</text>'


def _hint(join: PictureJoin) -> str:
    return f"{join.left} {join.cardinality} {join.right}: {join.label}"


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() else " " for c in text))
