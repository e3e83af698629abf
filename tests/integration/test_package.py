"""The built wheel works on its own: it carries the SQL, and initialises a database."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from coret_pg.resources import database_side

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(folder),
            str(REPOSITORY),
        ],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_the_database_side(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    root = database_side()
    wanted = [
        *(root / "sql").rglob("*.sql"),
        *(root / "migrations").rglob("*.py"),
        root / "alembic.ini",
    ]
    assert {f"coret_pg/_database_side/{path.relative_to(root)}" for path in wanted} <= names
    assert "coret_pg/models/data/bert_uncased_vocab.txt" in names
    assert "coret_pg/demo/questions.jsonl" in names
    assert "coret_pg/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "bench/"))]


def test_the_installed_wheel_initialises_a_database(wheel: Path, dsn: str, tmp_path: Path) -> None:
    # A fresh environment for our package; what it depends on is lent from this one, installed
    # there by the same lock, so that the test needs no network.
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    lent = sysconfig.get_path("purelib")
    Path(site, "lent.pth").write_text(f"{lent}\n")

    def coret(*arguments: str) -> str:
        return subprocess.run(
            [folder / "bin" / "coret", *arguments],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        ).stdout

    where = subprocess.run(
        [python, "-c", "import coret_pg, json; print(json.dumps(coret_pg.__file__))"],
        check=True, capture_output=True, text=True, cwd=tmp_path,
    ).stdout  # fmt: skip
    assert json.loads(where).startswith(str(folder))
    assert "Usage: coret" in coret("--help")
    assert "revision 0003" in coret("init", "--dsn", dsn)
