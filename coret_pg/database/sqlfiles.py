"""Read the SQL files of the database side."""

from functools import cache

from psycopg import sql

from coret_pg.resources import database_side


@cache
def query(name: str) -> sql.SQL:
    """Return sql/queries/<name>.sql; its {placeholders} are for identifiers and fragments only."""
    text = (database_side() / "sql" / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    # The text is ours, shipped with the package: as literal as one in the source.
    return sql.SQL(text)


def scripts(folder: str) -> list[str]:
    """Return the texts of sql/<folder>/*.sql in the order of their numbers."""
    files = sorted((database_side() / "sql" / folder).glob("*.sql"))
    return [file.read_text(encoding="utf-8") for file in files]
