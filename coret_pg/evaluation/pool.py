"""The pool under measure: what it holds, and whether the questions' tables are among it."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from coret_pg import __version__
from coret_pg.errors import EvaluationError
from coret_pg.evaluation.dataset import POOLS, Case
from coret_pg.models import ChatModel, Embedder
from coret_pg.offline.refresh import step_settings
from coret_pg.settings import Settings

_NAMED = 10
_LIBRARIES = ("onnxruntime", "sentence-transformers", "openai", "psycopg", "pgvector")


@dataclass(frozen=True)
class Configuration:
    """What a measure depends on; nothing secret.

    `k`: candidates a selection gets; `declared_keys`: foreign keys the pool's tables declare
    (retrieval doesn't use them; the pooled protocol asks for none).
    """

    pool: str
    tables: int
    declared_keys: int
    embedding_provider: str
    embedding_model: str
    embedding_revision: str
    dimension: int
    embedded_text: str
    chat_model: str | None
    k: int
    tau: float
    versions: Mapping[str, str]


def require_gold(connection: psycopg.Connection, model_id: int, cases: Sequence[Case]) -> int:
    """Return the number of tables in the pool, each embedded with the active model.

    Raises EvaluationError where a gold table is not among them, naming up to ten.
    """
    rows = connection.execute(
        "SELECT t.schema_name, t.table_name FROM coret.catalog_table AS t "
        "JOIN coret.table_embedding AS e ON e.table_id = t.table_id WHERE e.model_id = %s",
        [model_id],
    ).fetchall()
    there = {f"{schema}.{table}".lower() for schema, table in rows}
    missing = sorted({name for case in cases for name in case.gold_tables} - there)
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise EvaluationError(
            f"{len(missing)} tables that the questions need are not in the pool: "
            f"{', '.join(missing[:_NAMED])}{more}",
            remedy="Run `coret load <databases> --no-keys`, then `coret refresh`",
        )
    return len(rows)


def describe(
    connection: psycopg.Connection,
    settings: Settings,
    embedder: Embedder,
    chat: ChatModel | None,
    pool: str,
    tables: int,
) -> Configuration:
    """Return what this measure depends on."""
    row = connection.execute(
        "SELECT count(*) FROM coret.declared_key WHERE kind = 'foreign'"
    ).fetchone()
    return Configuration(
        pool=pool,
        tables=tables,
        declared_keys=int(row[0]) if row else 0,
        embedding_provider=embedder.provider,
        embedding_model=embedder.name,
        embedding_revision=embedder.revision,
        dimension=embedder.dimension,
        embedded_text=settings.embedded_text,
        chat_model=chat.model if chat else None,
        k=settings.k,
        tau=settings.tau,
        versions=_versions(connection),
    )


def doubts(
    connection: psycopg.Connection, model_id: int, settings: Settings, pool: str, tables: int
) -> list[str]:
    """Return reasons why figures of this pool don't compare with others."""
    warnings = []
    expected = POOLS[pool].tables if pool in POOLS else None
    if expected is not None and tables != expected:
        warnings.append(
            f"the pool holds {tables} tables, {pool} has {expected}: these figures don't compare "
            f"with others of {pool}"
        )
    # The setting as a refresh records it: a pool that was embedded otherwise is due again.
    row = connection.execute(
        "SELECT count(*) FROM coret.due_tables('embedding', %s)",
        [step_settings(settings, None, model_id)["embedding"]],
    ).fetchone()
    if row and row[0]:
        warnings.append(
            f"{row[0]} tables changed after they were embedded, or were embedded with another "
            f"text than {settings.embedded_text!r}: run `coret refresh`"
        )
    return warnings


def _versions(connection: psycopg.Connection) -> dict[str, str]:
    row = connection.execute(
        "SELECT current_setting('server_version'), "
        "(SELECT extversion FROM pg_extension WHERE extname = 'vector'), "
        "(SELECT version_num FROM coret.schema_version)"
    ).fetchone()
    postgres, extension, schema = row or ("", "", "")
    versions = {
        "coret_pg": __version__,
        "python": platform.python_version(),
        "postgres": postgres,
        "pgvector extension": extension,
        "coret schema": schema,
    }
    for library in _LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
