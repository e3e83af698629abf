"""The embedding step: vectors of tables and of column headers, per model."""

from collections.abc import Sequence

import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from coret_pg.database.sqlfiles import query
from coret_pg.errors import ModelError
from coret_pg.models import Embedder
from coret_pg.offline.purpose import plain_words
from coret_pg.offline.source import PoolTable

# pgvector indexes halfvec up to this many dimensions.
_MOST_DIMENSIONS = 4000


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
) -> None:
    """Embed some tables and their column headers, and store the vectors.

    The name and the purpose come first: models cut what is too long at its end.
    """
    register_vector(connection)
    table_ids = [table.table_id for table in tables]
    texts = connection.execute(query("embedding_inputs"), {"table_ids": table_ids}).fetchall()
    documents = [embedding_text(name, purpose, markdown) for _, name, purpose, markdown in texts]
    headers = connection.execute(query("column_headers"), {"table_ids": table_ids}).fetchall()
    header_texts = [header_text(table_name, column_name) for _, table_name, column_name in headers]
    table_vectors = embedder.embed_documents(documents)
    header_vectors = embedder.embed_documents(header_texts)
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(
            query("store_table_embedding"),
            [
                {
                    "model_id": model_id,
                    "table_id": row[0],
                    "embedding": Vector(vector),
                    "was_cut": cut,
                }
                for row, vector, cut in zip(
                    texts, table_vectors, embedder.cut_texts(documents), strict=True
                )
            ],
        )
        cursor.executemany(
            query("store_column_embedding"),
            [
                {"model_id": model_id, "column_id": row[0], "embedding": Vector(vector)}
                for row, vector in zip(headers, header_vectors, strict=True)
            ],
        )


def embedding_text(table_name: str, purpose: str | None, markdown: str | None) -> str:
    """Return what is embedded of a table: name, purpose, snapshot, in this order (paper, 3.1)."""
    parts = (f"{plain_words(table_name)}.", purpose, markdown)
    return "\n".join(part for part in parts if part)


def header_text(table_name: str, column_name: str) -> str:
    """Return what is embedded of a column: table name and column name."""
    return f"{plain_words(table_name)} {plain_words(column_name)}"
