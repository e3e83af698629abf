"""Build the demo warehouse: one SQLite file a business domain, with no declared keys.

Foreign keys hold exactly, except for the DIRTY_RELATIONS, where a few values have no parent:
stock counts whose product code was typed by hand, and viewings of titles deleted since.
"""

from pathlib import Path

from coret_pg.demo import clinic, hr, logistics, sales, school, streaming
from coret_pg.demo.draw import Draw
from coret_pg.demo.table import write_tables

QUESTIONS_FILE = Path(__file__).with_name("questions.jsonl")
DIRTY_RELATIONS = frozenset(
    {
        ("logistics.tbl_stock.prod_cd", "logistics.tbl_item.prod_cd"),
        ("streaming.watch_events.title_id", "streaming.titles.title_id"),
    }
)
DOMAINS = {
    "sales": sales.tables,
    "logistics": logistics.tables,
    "hr": hr.tables,
    "clinic": clinic.tables,
    "school": school.tables,
    "streaming": streaming.tables,
}


def build_warehouse(folder: Path, seed: int = 20) -> list[Path]:
    """Write one SQLite file a domain into the folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for domain, tables in DOMAINS.items():
        path = folder / f"{domain}.sqlite"
        write_tables(path, tables(Draw(f"{seed}:{domain}")))
        written.append(path)
    return written
