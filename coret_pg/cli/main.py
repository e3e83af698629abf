"""The command `coret`: its sub-commands, in the order a newcomer needs them."""

import typer

from coret_pg import __version__
from coret_pg.cli import answers, checks, extension, joins, measures, pool, server, worker
from coret_pg.cli.context import guarded

app = typer.Typer(
    name="coret",
    help="Coherent table retrieval for text-to-SQL, inside Postgres: a question in plain language "
    "in, the small joinable set of tables that answers it out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coret_pg {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


for module in (pool, answers, joins, worker, measures, checks, server, extension):
    module.register(app)


def run() -> None:
    """Run the command line."""
    guarded(app)
