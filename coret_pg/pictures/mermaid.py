"""A join graph as a Mermaid entity relationship diagram."""

from coret_pg.pictures.graph import Picture

_LINES = {"1:1": ("|o", "||"), "N:1": ("}o", "||"), "1:N": ("||", "o{"), "N:M": ("}o", "o{")}
# What may not stand in a quoted text of a diagram, as Mermaid's own entities.
_ENTITIES = str.maketrans({'"': "#quot;", "%": "#37;", "\\": "#92;", "#": "#35;", "`": "#96;"})


def as_mermaid(picture: Picture) -> str:
    """Return the text of an `erDiagram`; inferred joins have dashed lines."""
    ids = {table.name: f"t{number}" for number, table in enumerate(picture.tables, start=1)}
    lines = ["erDiagram"]
    lines += [f"    {ids[table.name]}[{_quoted(table.name)}]" for table in picture.tables]
    for join in picture.joins:
        left, right = _LINES[join.cardinality]
        line = f"{left}{'..' if join.is_inferred else '--'}{right}"
        lines.append(f"    {ids[join.left]} {line} {ids[join.right]} : {_quoted(join.label)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text).strip() or " "
    return f'"{printable.translate(_ENTITIES)}"'
