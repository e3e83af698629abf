"""Configuration: where it comes from, and that secrets never leave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from coret_pg.database.connection import parse_dsn
from coret_pg.errors import ConfigurationError
from coret_pg.settings import load_settings


def test_arguments_win_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("CORET_K=3\nCORET_TAU=0.3\nCORET_SAMPLE_ROWS=2\n")
    monkeypatch.setenv("CORET_TAU", "0.7")
    monkeypatch.setenv("CORET_SAMPLE_ROWS", "4")
    settings = load_settings(sample_rows=6, k=None)
    assert (settings.k, settings.tau, settings.sample_rows) == (3, 0.7, 6)


def test_a_bad_value_is_named_but_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORET_K", "secret-in-the-wrong-place")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tau=2.0)
    assert "k:" in str(caught.value)
    assert "tau:" in str(caught.value)
    assert "secret-in-the-wrong-place" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    settings = load_settings(
        dsn="postgresql://u:hunter2@h/d", llm_api_key="sk-hunter2", embedding_api_key="hunter2"
    )
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings.model_dump_json())


def test_the_key_comes_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-from-file\n")
    key = load_settings(llm_api_key_file=file).api_key
    assert key is not None
    assert key.get_secret_value() == "sk-from-file"
    with pytest.raises(ConfigurationError, match="CORET_LLM_API_KEY_FILE"):
        _ = load_settings(llm_api_key_file=tmp_path / "absent").api_key


@pytest.mark.parametrize(
    ("base_url", "sent"),
    [
        (None, True),
        ("https://api.openai.com/v1", True),
        ("https://models.example/v1", False),
        ("https://evil.example/?//api.openai.com", False),
    ],
)
def test_openais_key_goes_to_openai_alone(
    base_url: str | None, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert (load_settings(llm_base_url=base_url).api_key is not None) is sent


def test_the_embedded_server_is_used_only_where_nothing_else_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert load_settings().uses_embedded_server
    assert not load_settings(dsn="dbname=x").uses_embedded_server
    monkeypatch.setenv("PGSERVICE", "warehouse")
    assert not load_settings().uses_embedded_server


@pytest.mark.parametrize(
    "dsn",
    [
        "postgres://ann:p%40ss%2Fw%25rd@db.example:5433/pool",
        "postgresql://ann:p%40ss%2Fw%25rd@db.example:5433/pool",
        "postgresql+psycopg://ann:p%40ss%2Fw%25rd@db.example:5433/pool",
        "host=db.example port=5433 user=ann password='p@ss/w%rd' dbname=pool",
        "  POSTGRESQL+psycopg2://ann:p%40ss%2Fw%25rd@db.example:5433/pool ",
    ],
)
def test_every_form_of_a_dsn_says_the_same(dsn: str) -> None:
    assert parse_dsn(dsn) == {
        "host": "db.example",
        "port": "5433",
        "user": "ann",
        "password": "p@ss/w%rd",
        "dbname": "pool",
    }


@pytest.mark.parametrize(
    "dsn",
    [
        "not a dsn hunter2",
        "mysql://u:hunter2@h/d",
        "host=h hunter2",
        "postgresql://ann:un@hunter2@h/d",
    ],
)
def test_a_bad_dsn_is_refused_and_not_shown(dsn: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_dsn(dsn)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
