"""Configuration, read in one place: arguments, then environment, then .env, then defaults."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from coret_pg.errors import ConfigurationError

EmbeddingProvider = Literal["onnx", "sentence-transformers", "openai"]
Gate = Literal["families", "strict"]
EmbeddedText = Literal["names", "paper"]
LedgerPrompts = Literal["text", "hash"]
OPENAI_HOST = "api.openai.com"
LIBPQ_VARIABLES = ("PGHOST", "PGSERVICE", "PGDATABASE", "PGHOSTADDR")


class Settings(BaseSettings):
    """Every knob of coret; the environment variable is CORET_ + the name in upper case."""

    model_config = SettingsConfigDict(
        env_prefix="CORET_", env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    # --- database
    dsn: SecretStr | None = Field(
        None,
        description="Where the pool is; any libpq or SQLAlchemy form. Unset: libpq's own "
        "variables (PGHOST, PGSERVICE ...), else the embedded server.",
    )
    pooler: bool = Field(
        False, description="The DSN goes through PgBouncer: no prepared statements."
    )
    connect_timeout_s: int = Field(10, ge=1, description="Seconds to wait for a connection.")
    statement_timeout_ms: int = Field(
        60_000, ge=100, description="Limit of one read of a user's table."
    )
    lock_timeout_ms: int = Field(
        2_000, ge=10, description="Longest wait for a lock on a user's table."
    )

    # --- embedded server
    data_dir: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("coret_pg")),
        description="Where the embedded server keeps its data.",
    )
    server_socket_dir: Path | None = Field(
        None,
        description="Folder of the embedded server's socket. Unset: inside the data folder, "
        "or a private folder for temporary files where that path would be too long.",
    )
    server_port: int | None = Field(
        None, ge=1, le=65535, description="Also listen on 127.0.0.1 at this port, with a password."
    )
    server_user: str | None = Field(
        None, description="When run as root: the system user that owns the embedded server."
    )

    # --- embedding model
    embedding_provider: EmbeddingProvider = Field("onnx", description="Who computes embeddings.")
    embedding_model: str = Field("all-MiniLM-L6-v2", description="Name (or folder) of the model.")
    embedding_base_url: str | None = Field(
        None, description="OpenAI-compatible endpoint of embeddings."
    )
    embedding_api_key: SecretStr | None = Field(None, description="Key of that endpoint.")

    # --- chat model
    llm_model: str | None = Field(None, description="Chat model; unset: no LLM is used.")
    llm_base_url: str | None = Field(
        None, description="OpenAI-compatible chat endpoint; unset: OpenAI's."
    )
    llm_api_key: SecretStr | None = Field(
        None, description="Key of that endpoint (else OPENAI_API_KEY)."
    )
    llm_api_key_file: Path | None = Field(None, description="File that holds the key.")
    llm_timeout_s: float = Field(60.0, gt=0, description="Limit of one chat request.")
    llm_max_retries: int = Field(2, ge=0, description="Further tries after a failed chat request.")
    ledger_prompts: LedgerPrompts = Field(
        "text",
        description="What the ledger keeps of a prompt. text: every word; hash: its SHA-256 alone.",
    )

    # --- method
    k: int = Field(10, ge=1, le=1000, description="Candidates a question.")
    tau: float = Field(
        0.5, ge=0, le=1, description="Adjustment step 1 adds a partner above this score."
    )
    embedded_text: EmbeddedText = Field(
        "names",
        description="What is embedded of a table. names: name, columns, and what a person or a "
        "chat model wrote of it; paper: name, purpose, snapshot.",
    )
    workers: int = Field(
        2, ge=1, le=64, description="Tables that a refresh reads at the same time."
    )
    sketch_rows: int = Field(
        1_000_000,
        ge=1,
        description="Tables of more rows are profiled from sketches, in memory that doesn't grow.",
    )
    calls: int = Field(
        8, ge=1, le=64, description="Questions from SQL that a worker answers at the same time."
    )
    gate: Gate = Field(
        "families",
        description="Which columns compare. families: types of one family, NULLs ignored; strict, "
        "as the reference code: equal declared types, and a column with a NULL is not unique.",
    )
    score_floor: float = Field(
        0.4,
        ge=0,
        le=1,
        description="Compatibility below it is computed when asked for, not stored; 0 stores all.",
    )
    sample_rows: int = Field(5, ge=0, le=100, description="Rows of a table's snapshot.")
    sample_seed: int = Field(0, description="Seed of the sampled rows.")

    @cached_property
    def api_key(self) -> SecretStr | None:
        """Return the chat key: given, from its file, or OPENAI_API_KEY; None where there is none.

        Raises ConfigurationError where the file can't be read.
        """
        if self.llm_api_key is not None:
            return self.llm_api_key
        if self.llm_api_key_file is not None:
            try:
                return SecretStr(self.llm_api_key_file.read_text().strip())
            except OSError as error:
                raise ConfigurationError(
                    f"The key file {self.llm_api_key_file} can't be read: {error.strerror}",
                    remedy="Point CORET_LLM_API_KEY_FILE to a readable file, or unset it",
                ) from error
        return openai_key(self.llm_base_url)

    @property
    def uses_embedded_server(self) -> bool:
        """Tell whether no database was named, so that the embedded server is the one."""
        return self.dsn is None and not any(os.environ.get(name) for name in LIBPQ_VARIABLES)


def openai_key(base_url: str | None) -> SecretStr | None:
    """Return OPENAI_API_KEY where the endpoint is OpenAI's own: it is never sent to another."""
    if base_url is not None and urlsplit(base_url).hostname != OPENAI_HOST:
        return None
    key = os.environ.get("OPENAI_API_KEY")
    return SecretStr(key) if key else None


def load_settings(**arguments: Any) -> Settings:
    """Return the settings; arguments that are None count as not given.

    Raises ConfigurationError naming each bad setting, never its value.
    """
    try:
        return Settings(**{name: value for name, value in arguments.items() if value is not None})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
            for item in error.errors()
        )
        raise ConfigurationError(
            f"The configuration can't be used: {problems}",
            remedy="Correct the CORET_ variable or argument of that name "
            "(docs/reference/settings.md)",
        ) from error
