"""Coherent table retrieval for text-to-SQL, inside Postgres."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coret_pg.api import Coret
    from coret_pg.online.result import Retrieval

__version__ = "0.1.0"
__all__ = ["Coret", "Retrieval", "__version__"]


def __getattr__(name: str) -> Any:
    # On first use: the command line's help and the embedded server's guardian need none of it.
    if name == "Coret":
        from coret_pg.api import Coret

        return Coret
    if name == "Retrieval":
        from coret_pg.online.result import Retrieval

        return Retrieval
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
