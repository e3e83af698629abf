"""A Postgres of our own: started by the first process that needs it, stopped after the last.

The names are resolved on first use: the guardian runs from this package too, and must stay
small, so importing the package alone loads nothing but the standard library's basics.
"""

import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coret_pg.database.embedded.clients import Attachment
    from coret_pg.database.embedded.server import ServerState, attach, down, server_state, up

__all__ = ["Attachment", "ServerState", "attach", "down", "server_state", "up"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if os.name != "posix":
        from coret_pg.errors import ServerError

        raise ServerError(
            "The embedded server runs on Linux and macOS only",
            remedy="Pass --dsn with a Postgres server of your own",
        )
    return getattr(importlib.import_module(f"{__name__}.server"), name)
