"""The embedding step: vectors of tables and of column headers, per model."""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg.rows import class_row

from coret_pg.database.sqlfiles import query
from coret_pg.errors import ModelError
from coret_pg.models import Embedder
from coret_pg.offline.purpose import plain_words
from coret_pg.offline.source import PoolTable
from coret_pg.settings import EmbeddedText

# pgvector indexes halfvec up to this many dimensions.
_MOST_DIMENSIONS = 4000


@dataclass(frozen=True)
class TableText:
    """What a table's embedded text is made of."""

    table_id: int
    table_name: str
    column_names: list[str]
    comments: str | None
    purpose: str | None
    made_by: str | None
    markdown: str | None


def register_model(connection: psycopg.Connection, embedder: Embedder) -> int:
    """Return the id of the embedder's model, registered if it is new; it isn't active yet.

    Raises ModelError where no index can hold its dimension.
    """
    if embedder.dimension > _MOST_DIMENSIONS:
        raise ModelError(
            f"The embedding model {embedder.name} has {embedder.dimension} dimensions; pgvector "
            f"indexes at most {_MOST_DIMENSIONS}",
            remedy="Choose another model (CORET_EMBEDDING_MODEL)",
        )
    row = connection.execute(
        query("register_model"),
        {
            "provider": embedder.provider,
            "model_name": embedder.name,
            "revision": embedder.revision,
            "dimension": embedder.dimension,
        },
    ).fetchone()
    if row is None:
        raise RuntimeError("register_model returned no row")
    return int(row[0])


def activate_model(connection: psycopg.Connection, model_id: int) -> None:
    """Build the model's index and let it answer questions from now on, in one transaction."""
    connection.execute("SELECT coret.activate_model(%s::smallint)", [model_id])


def embed_tables(
    connection: psycopg.Connection,
    embedder: Embedder,
    model_id: int,
    tables: Sequence[PoolTable],
    form: EmbeddedText,
) -> None:
    """Embed some tables and their column headers, and store the vectors."""
    register_vector(connection)
    table_ids = [table.table_id for table in tables]
    with connection.cursor(row_factory=class_row(TableText)) as cursor:
        texts = cursor.execute(
            query("embedding_inputs"), {"table_ids": table_ids, "is_remote": embedder.is_remote}
        ).fetchall()
    documents = [embedding_text(text, form) for text in texts]
    headers = connection.execute(query("column_headers"), {"table_ids": table_ids}).fetchall()
    header_texts = [header_text(table_name, column_name) for _, table_name, column_name in headers]
    table_vectors = embedder.embed_documents(documents)
    header_vectors = embedder.embed_documents(header_texts)
    with connection.transaction(), connection.cursor() as storing:
        storing.executemany(
            query("store_table_embedding"),
            [
                {
                    "model_id": model_id,
                    "table_id": text.table_id,
                    "embedding": Vector(vector),
                    "was_cut": cut,
                }
                for text, vector, cut in zip(
                    texts, table_vectors, embedder.cut_texts(documents), strict=True
                )
            ],
        )
        storing.executemany(
            query("store_column_embedding"),
            [
                {"model_id": model_id, "column_id": row[0], "embedding": Vector(vector)}
                for row, vector in zip(headers, header_vectors, strict=True)
            ],
        )


def embedding_text(table: TableText, form: EmbeddedText) -> str:
    """Return what is embedded of a table.

    "paper": table name, purpose and snapshot. "names": table name and columns, then the purpose
    if a person or a chat model wrote it, else the comments: a composed purpose and sampled rows
    only dilute the names (docs/results.md). Models cut what is too long at its end.
    """
    name = plain_words(table.table_name)
    if form == "paper":
        parts = [f"{name}.", table.purpose, table.markdown]
    else:
        columns = ", ".join(plain_words(column) for column in table.column_names)
        words = table.comments if table.made_by in (None, "composed") else table.purpose
        parts = [f"{name}: {columns}" if columns else name, words]
    return "\n".join(part for part in parts if part)


def header_text(table_name: str, column_name: str) -> str:
    """Return what is embedded of a column: table name and column name."""
    return f"{plain_words(table_name)} {plain_words(column_name)}"
