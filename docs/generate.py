"""Write docs/reference from the code: commands, settings, SQL objects, errors.

`python docs/generate.py` writes the files; with `--check` it writes nothing and ends with 1 where
one of them is stale.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from sql_files import Function, Relation, SqlObjects, read_sql

from coret_pg import errors
from coret_pg.cli.context import INTERRUPTED, NOTHING_FITS
from coret_pg.cli.main import app
from coret_pg.settings import Settings

DOCS = Path(__file__).parent
SQL = DOCS.parent / "sql"
REFERENCE = DOCS / "reference"
NOTE = "<!-- Written by docs/generate.py: change the code, then run `python docs/generate.py`. -->"

# What a default depends on the machine for, in words.
GENERIC_DEFAULTS = {"data_dir": "`coret_pg` in the user's data folder (see the text below)"}
TYPE_NAMES = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with --check tell whether they are current; return the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python docs/generate.py [--check]", file=sys.stderr)
        return 2
    stale = []
    for name, text in pages().items():
        file = REFERENCE / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not arguments:
                REFERENCE.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
    if arguments and stale:
        print(f"stale: {', '.join(stale)}; run: python docs/generate.py", file=sys.stderr)
        return 1
    if not arguments:
        print(f"written: {', '.join(stale) or 'nothing, all is current'}")
    return 0


def pages() -> dict[str, str]:
    """Return the text of every generated page by its file name."""
    return {
        "cli.md": cli_page(),
        "settings.md": settings_page(),
        "sql.md": sql_page(),
        "errors.md": errors_page(),
    }


def page(title: str, *parts: str) -> str:
    """Return a page: the note, the title, then its parts with blank lines between them."""
    return "\n\n".join([NOTE, f"# {title}", *(part.strip("\n") for part in parts if part)]) + "\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; cells on one line, with bars escaped."""
    lines = [[*header], ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- commands


def cli_page() -> str:
    """Return the page of the command line."""
    command: Any = typer.main.get_command(app)
    parts = [
        command.help,
        "Results go to standard output, progress and remarks to standard error. What holds for "
        "every command is a [setting](settings.md).",
        f"## coret\n\n```\ncoret [{'] ['.join(command.params[0].opts)}] COMMAND ...\n```",
        _parameters(command),
        table(
            ["command", "what it does"],
            [
                [f"[`coret {name}`](#coret-{name})", sub.help.partition("\n")[0]]
                for name, sub in command.commands.items()
            ],
        ),
    ]
    for name, sub in command.commands.items():
        places = [
            (p.name.upper() if p.required else f"[{p.name.upper()}]")
            for p in sub.params
            if _is_argument(p)
        ]
        usage = " ".join(["coret", name, *places, "[OPTIONS]"])
        parts += [f"## coret {name}", f"```\n{usage}\n```", sub.help, _parameters(sub)]
    return page("Commands", *parts, "## Exit codes", _exit_codes())


def _is_argument(parameter: Any) -> bool:
    return not parameter.opts[0].startswith("-")


def _parameters(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if _is_argument(parameter):
            shown, kind = f"`{parameter.name.upper()}`", _value_type(parameter)
        else:
            shown = ", ".join(f"`{o}`" for o in (*parameter.opts, *parameter.secondary_opts))
            kind = "flag" if parameter.is_flag else _value_type(parameter)
        rows.append([shown, kind, _option_default(parameter), parameter.help or ""])
    rows.append(["`-h`, `--help`", "flag", "", "Show the command's help."])
    return table(["parameter", "value", "default", "meaning"], rows)


def _value_type(parameter: Any) -> str:
    kind = str(parameter.type_descriptor.annotation.__name__)
    return {**TYPE_NAMES, "Path": "path"}.get(kind, kind)


def _option_default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None or parameter.name == "version":
        return ""
    if parameter.is_flag:
        if parameter.secondary_opts:
            return f"`{(parameter.opts if parameter.default else parameter.secondary_opts)[0]}`"
        return "on" if parameter.default else "off"
    return f"`{parameter.default}`"


def _exit_codes() -> str:
    meanings: dict[int, list[str]] = {}
    for error in error_classes():
        if error is not errors.CoretError:
            meanings.setdefault(error.exit_code, []).append(f"[{error.__name__}](errors.md)")
    meanings[0] = ["done"]
    meanings[1] = ["a check of `coret doctor` failed, or an error coret has no name for"]
    meanings[2].append("a command or option that does not exist")
    meanings[NOTHING_FITS] = ["`coret retrieve`: answered that no table fits the question"]
    meanings[INTERRUPTED] = ["stopped by Ctrl-C; what was finished is kept"]
    rows = [[str(code), ", ".join(said)] for code, said in sorted(meanings.items())]
    return table(["code", "meaning"], rows)


# --- settings


def settings_page() -> str:
    """Return the page of the settings."""
    prefix = Settings.model_config.get("env_prefix", "")
    rows = []
    for name, info in Settings.model_fields.items():
        rows.append(
            [
                f"`{name}`",
                f"`{prefix}{name.upper()}`",
                _setting_type(info),
                _setting_default(name, info),
                info.description or "",
            ]
        )
    return page(
        "Settings",
        "Every setting is an environment variable, and an argument of `coret_pg.Coret` by its "
        "name. What is given as an argument or on the command line wins over the environment, "
        "which wins over a file `.env` in the current folder, which wins over the default.",
        table(["name", "variable", "type", "default", "meaning"], rows),
        "The user's data folder is `$XDG_DATA_HOME` or `~/.local/share` on Linux and "
        "`~/Library/Application Support` on macOS.",
        "Read besides these: libpq's own variables (`PGHOST`, `PGSERVICE`, `PGPASSFILE` ...) where "
        "no DSN is set, and `OPENAI_API_KEY` and `OPENAI_BASE_URL` "
        "(see [Choose the models](../how-to/choose-models.md)).",
    )


def _setting_type(info: FieldInfo) -> str:
    kinds = [kind for kind in get_args(info.annotation) if kind is not type(None)]
    if all(isinstance(kind, str) for kind in kinds) and kinds:
        return " or ".join(f"`{kind}`" for kind in kinds)
    kind = kinds[0] if kinds else info.annotation
    if kind is SecretStr:
        return "secret text"
    name = getattr(kind, "__name__", str(kind))
    limits = [
        f"{words} {getattr(limit, key):g}"
        for limit in info.metadata
        for key, words in (("ge", "at least"), ("gt", "above"), ("le", "at most"))
        if hasattr(limit, key)
    ]
    return ", ".join([{**TYPE_NAMES, "Path": "path"}.get(name, name), *limits])


def _setting_default(name: str, info: FieldInfo) -> str:
    if name in GENERIC_DEFAULTS:
        return GENERIC_DEFAULTS[name]
    if info.default_factory is not None:
        raise SystemExit(f"docs/generate.py: give {name} a generic default: it may name a machine")
    if _setting_type(info) == "secret text":
        return "none"
    if info.default is None:
        return "unset"
    return f"`{str(info.default).lower() if isinstance(info.default, bool) else info.default}`"


# --- SQL


def sql_page() -> str:
    """Return the page of the SQL side, read from the files of sql/."""
    objects = SqlObjects()
    sections = []
    for folder in ("schema", "functions"):
        for file in sorted((SQL / folder).glob("*.sql")):
            text = file.read_text(encoding="utf-8")
            created = read_sql(text, objects)
            if created:
                sections.append((_banner(text), created))
    parts = [
        f"{objects.required_comment('schema coret')}",
        "Read from the files in `sql/schema` and `sql/functions`, which "
        "`coret init` runs: see [Architecture](../explanation/architecture.md).",
        "## Functions",
        table(
            ["function", "returns", "volatility", "what it does"],
            [_function_row(function, objects) for function in objects.functions],
        ),
        "Strict functions return NULL (or no row) where an argument is NULL.",
        "## Views",
        table(
            ["view", "what it shows"],
            [
                [f"`coret.{view.name}`", objects.required_comment(f"view {view.name}")]
                for view in objects.views
            ],
        ),
        "## Tables",
    ]
    for title, tables in sections:
        parts.append(title)
        # A later file may have dropped one.
        parts += [_table_part(table, objects) for table in tables if table in objects.tables]
    unused = set(objects.comments) - objects.used
    if unused:
        raise SystemExit(f"docs/generate.py: comments on unknown things: {sorted(unused)}")
    return page("SQL interface", *parts)


def _banner(text: str) -> str:
    """Return the first comment of a file, as one paragraph."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.strip("- "))
    return " ".join(line for line in lines if line)


def _table_part(relation: Relation, objects: SqlObjects) -> str:
    rows = [
        [
            f"`{column.name}`",
            f"`{column.type}`",
            column.rules,
            objects.comment(f"column {relation.name}.{column.name}"),
        ]
        for column in relation.columns
    ]
    comment = objects.required_comment(f"table {relation.name}")
    columns = table(["column", "type", "rules", "meaning"], rows)
    return f"### coret.{relation.name}\n\n{comment}\n\n{columns}"


def _function_row(function: Function, objects: SqlObjects) -> list[str]:
    volatility = function.volatility.lower() + (", strict" if function.strict else "")
    if function.kind == "procedure":
        volatility = "procedure"
    return [
        f"`coret.{function.name}({function.arguments})`",
        f"`{function.returns}`" if function.returns else "",
        volatility,
        objects.required_comment(f"{function.kind} {function.name}/{function.types}"),
    ]


# --- errors


def errors_page() -> str:
    """Return the page of the error classes."""
    rows = []
    for error in error_classes():
        base = error.__bases__[0].__name__
        rows.append(
            [
                f"`{error.__name__}`",
                f"`{base}`",
                str(error.exit_code),
                (inspect.getdoc(error) or "").partition("\n")[0],
            ]
        )
    return page(
        "Errors",
        "The classes are in `coret_pg.errors`. Each error says what happened (`what`) and what to "
        "do next (`remedy`), and neither holds a password or a key. The command line prints both "
        "and ends with the class's exit code.",
        table(["class", "kind of", "exit code", "meaning"], rows),
        "Messages and remedies by example: [Troubleshoot](../how-to/troubleshoot.md).",
    )


def error_classes() -> list[type[errors.CoretError]]:
    """Return the error classes in the order of their definition."""
    return [
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, errors.CoretError)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
