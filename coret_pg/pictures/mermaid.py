"""A join graph as a Mermaid entity relationship diagram."""

import re

from coret_pg.pictures.graph import Picture

_LINES = {"1:1": ("|o", "||"), "N:1": ("}o", "||"), "1:N": ("||", "o{"), "N:M": ("}o", "o{")}
# What ends a quoted text, or is read as Mermaid's, HTML's, Markdown's or TeX's own.
_ENTITIES = {ord(c): f"#{ord(c)};" for c in '"%\\#`&<>*$~:'}
# Mermaid takes any line with `direction TB` in it, quoted or not, for a direction.
_DIRECTION = re.compile(r"(direction)\s", re.IGNORECASE)
# Markdown's emphasis; within a word an underscore is only itself.
_EMPHASIS = re.compile(r"(?<![^\W_])_|_(?![^\W_])")


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
    # Mermaid parses a blank name, but fails to draw it.
    printable = "".join(c if c.isprintable() else " " for c in text).strip() or "?"
    escaped = _DIRECTION.sub(r"\1#32;", printable.translate(_ENTITIES))
    escaped = _EMPHASIS.sub("#95;", escaped)
    return f'"{escaped}"'
