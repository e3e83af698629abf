"""The catalog step: make coret's catalog say what a source holds now."""

from dataclasses import dataclass

import psycopg

from coret_pg.database.sqlfiles import query
from coret_pg.offline.source import PoolColumn, PoolTable, Source


@dataclass(frozen=True)
class CatalogChange:
    """How many tables a sync added, changed and removed."""

    added: int
    changed: int
    removed: int


def sync_catalog(connection: psycopg.Connection, source: Source) -> CatalogChange:
    """Merge the source's tables into the catalog, in one transaction.

    A renamed table keeps its id (same OID); a recreated one too (same name).
    """
    rows = source.catalog()
    with connection.transaction():
        connection.execute(query("incoming_catalog"))
        with connection.cursor().copy("COPY pg_temp.incoming_table FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        counts = connection.execute(
            query("sync_catalog"), {"source_id": source.source_id}
        ).fetchone()
        # Before any value of a new column is kept.
        connection.execute("SELECT coret.apply_sample_policies()")
    return CatalogChange(*counts) if counts else CatalogChange(0, 0, 0)


def read_tables(connection: psycopg.Connection, table_ids: list[int]) -> list[PoolTable]:
    """Return catalogued tables by id, in order of id."""
    rows = connection.execute(query("pool_tables"), {"table_ids": table_ids}).fetchall()
    return [PoolTable(*row) for row in rows]


def read_columns(connection: psycopg.Connection, table_id: int) -> list[PoolColumn]:
    """Return a table's columns in their order."""
    rows = connection.execute(query("pool_columns"), {"table_id": table_id}).fetchall()
    return [PoolColumn(*row) for row in rows]
