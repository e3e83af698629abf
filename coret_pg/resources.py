"""Find the database side (sql/, migrations/, alembic.ini), in a checkout or an installed wheel."""

from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent


@cache
def database_side() -> Path:
    """Return the folder that holds sql/, migrations/ and alembic.ini."""
    installed = PACKAGE / "_database_side"
    return installed if installed.is_dir() else PACKAGE.parent
