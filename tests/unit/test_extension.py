"""The extension's files: built from what the migrations run, for each version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from coret_pg import __version__
from coret_pg.database.extension import (
    extension_files,
    require_current,
    version_revisions,
    write_extension,
)
from coret_pg.database.sqlfiles import scripts
from coret_pg.errors import InputError, SchemaError
from coret_pg.resources import database_side

REPOSITORY = Path(__file__).parent.parent.parent


def test_the_newest_version_is_this_package_at_the_newest_revision() -> None:
    """A new revision, or a new version, needs its line in sql/extension/versions.toml."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    head = ScriptDirectory(str(database_side() / "migrations")).get_current_head()
    assert list(version_revisions().items())[-1] == (project["version"], head)
    assert project["version"] == __version__


def test_the_script_holds_every_file_of_sql_once() -> None:
    files = extension_files()
    script = files[f"coret--{__version__}.sql"]
    # The schema itself is made by CREATE EXTENSION, as the control file says.
    schema, *tables = scripts("schema")
    positions = [script.index(text) for text in tables + scripts("functions") + scripts("rights")]
    assert positions == sorted(positions)
    assert re.search(r"COMMENT ON SCHEMA coret IS\s+'coret_pg:", script)
    assert schema not in script
    assert f"default_version = '{__version__}'" in files["coret.control"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.*pg_config --sharedir"):
        write_extension(tmp_path / "nowhere")


def test_an_unknown_version_is_a_newer_one() -> None:
    require_current(__version__, "here")
    with pytest.raises(SchemaError, match="pip install -U coret-pg"):
        require_current("999.0", "here")
