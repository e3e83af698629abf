"""A join graph in the language of Graphviz."""

from html import escape

from coret_pg.pictures.graph import Picture, PictureTable


def as_dot(picture: Picture) -> str:
    """Return a DOT graph: a box a table with a row a column; inferred joins are dashed."""
    ids = {table.name: f"t{number}" for number, table in enumerate(picture.tables, start=1)}
    ports = {
        (table.name, column): f"{ids[table.name]}:c{number}"
        for table in picture.tables
        for number, column in enumerate(table.columns, start=1)
    }
    lines = [
        "digraph joins {",
        f"    label={_quoted(picture.title)};",
        "    rankdir=LR;",
        '    node [shape=plain, fontname="sans-serif"];',
        '    edge [arrowhead=none, fontname="sans-serif", fontsize=10];',
    ]
    lines += [f"    {ids[table.name]} [label=<{_box(table)}>];" for table in picture.tables]
    for join in picture.joins:
        left = ports.get((join.left, join.left_columns[0]), ids[join.left])
        right = ports.get((join.right, join.right_columns[0]), ids[join.right])
        style = "dashed" if join.is_inferred else "solid"
        label = _quoted(f"{join.cardinality}  {join.label}")
        lines.append(f"    {left} -> {right} [style={style}, label={label}];")
    return "\n".join([*lines, "}"]) + "\n"


def _box(table: PictureTable) -> str:
    rows = [f"<tr><td><b>{_text(table.name)}</b></td></tr>"]
    rows += [
        f'<tr><td port="c{number}" align="left">{_text(column)}</td></tr>'
        for number, column in enumerate(table.columns, start=1)
    ]
    return f'<table border="0" cellborder="1" cellspacing="0">{"".join(rows)}</table>'


def _text(text: str) -> str:
    # Graphviz replaces \N and its like in any label, \N by the name of the node.
    return escape(_printable(text)).replace("\\", "\\\\") or " "


def _quoted(text: str) -> str:
    # Graphviz reads &lt; and its like in any label.
    escaped = _printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
