"""Join graphs drawn: as Mermaid, as Graphviz DOT and as SVG. Inferred joins are dashed."""

from coret_pg.pictures.dot import as_dot
from coret_pg.pictures.graph import Picture, PictureJoin, PictureTable
from coret_pg.pictures.mermaid import as_mermaid
from coret_pg.pictures.svg import as_svg

__all__ = ["Picture", "PictureJoin", "PictureTable", "as_dot", "as_mermaid", "as_svg"]
