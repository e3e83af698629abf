"""The documentation agrees with the code, and its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from coret_pg.cli.main import app
from coret_pg.settings import Settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]
HAND_WRITTEN = [page for page in PAGES if page.parent.name != "reference"]
COMMANDS = typer.main.get_command(app).commands

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
CODE = re.compile(r"`[^`\n]+`")
VARIABLE = re.compile(r"\bCORET_[A-Z0-9_]*[A-Z0-9]")
COMMAND = re.compile(r"^(?:\$ )?coret ([a-z-]+)")


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands_in(text: str) -> list[tuple[str, str]]:
    """Return the commands of coret in a page's code, each with its whole line or span."""
    spans = [span.strip("`") for span in CODE.findall(FENCE.sub("", text))]
    lines = [line for fence in FENCE.findall(text) for line in fence.splitlines()]
    found = [(COMMAND.match(code), code) for code in (*spans, *lines)]
    return [(match[1], code) for match, code in found if match]


def test_the_reference_is_current():
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_links_resolve(page):
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    # A link's text may be code.
    text += "\n".join(re.findall(r"\[`[^`]*`\]\([^)\s]+\)", page.read_text(encoding="utf-8")))
    broken = []
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_on_the_map():
    mapped = {
        (DOCS / link.partition("#")[0]).resolve()
        for link in LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))
    }
    pages = {page for page in DOCS.rglob("*.md") if page.name != "index.md"}
    assert {title(page) for page in pages - mapped} == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_explained(command):
    texts = [page.read_text(encoding="utf-8") for page in HAND_WRITTEN if DOCS in page.parents]
    assert any(f"coret {command}" in text for text in texts)
    assert f"## coret {command}\n" in (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_commands_and_options_exist(page):
    for name, code in commands_in(page.read_text(encoding="utf-8")):
        assert name in COMMANDS, code
        parameters = COMMANDS[name].params
        known = {option for p in parameters for option in (*p.opts, *p.secondary_opts)}
        asked = code.partition("#")[0]
        assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", asked)) <= known, code


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_variables_exist(page):
    known = {f"CORET_{name.upper()}" for name in Settings.model_fields}
    assert set(VARIABLE.findall(page.read_text(encoding="utf-8"))) <= known


def test_every_variable_is_in_the_reference():
    text = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    assert {f"CORET_{name.upper()}" for name in Settings.model_fields} <= set(
        VARIABLE.findall(text)
    )
