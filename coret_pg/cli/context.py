"""What every command shares: the options all take, the consoles, and how errors end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from coret_pg.errors import CoretError
from coret_pg.settings import Settings, load_settings

output = Console(soft_wrap=True)
# Progress and remarks go to standard error: standard output is the answer alone.
remarks = Console(stderr=True)

Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        help="The database that holds the pool: a URL or libpq keywords. Default: CORET_DSN, then "
        "libpq's variables, then the embedded server.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]

NOTHING_FITS = 10
INTERRUPTED = 130


def settings_of(dsn: str | None, **more: Any) -> Settings:
    """Return the settings, with what the command line gave on top."""
    return load_settings(dsn=dsn, **more)


def guarded(command: Callable[[], object]) -> NoReturn:
    """Run the command line; turn errors meant for people into one message and an exit code."""
    try:
        command()
    except CoretError as error:
        remarks.print(f"[bold red]error:[/] {_plain(error.what)}.")
        remarks.print(f"[bold]next:[/] {_plain(error.remedy)}.")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        remarks.print("Stopped. What was finished is kept; the same command goes on from there.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has left (`| head`): nothing to say, and no traceback at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(0)


def _plain(text: str) -> str:
    """Keep square brackets in a message from being read as markup."""
    return text.replace("[", "\\[")
