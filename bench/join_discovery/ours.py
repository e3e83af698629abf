"""Our method, stage by stage, through the project's own functions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import psycopg

from bench.join_discovery.columns import statement
from bench.join_discovery.measure import Measured, Meter, ServerProcesses
from bench.join_discovery.process import Pool
from coret_pg.database.connection import Database, suit_refresh
from coret_pg.offline.catalog import read_tables, sync_catalog
from coret_pg.offline.compatibility import renew_compatibility, renew_inclusions
from coret_pg.offline.profile import profile_table
from coret_pg.offline.refresh import _COMPATIBILITY_BATCH, _INCLUSION_BATCH
from coret_pg.offline.source import PostgresSource
from coret_pg.settings import load_settings

# All that it takes to have the verified pairs.
UP_TO_VERIFICATION = ("catalog", "staging", "inclusion")


def run(pool: Pool, meter: Meter, measured: Measured) -> None:
    """Discover the joins of a pool as a refresh does; then count what was found."""
    with (
        Database(load_settings(dsn=pool.dsn)) as database,
        database.session(autocommit=True) as connection,
    ):
        ids = _discover(database, connection, meter)
        # What a refresh has to do when one table has changed.
        once = Meter(ServerProcesses(pool.postmaster))
        with once.stage("one table"), closing(PostgresSource(database, 1)) as source:
            (table,) = read_tables(connection, [ids[len(ids) // 2]])
            profile_table(connection, source, table)
            renew_inclusions(connection, [table.table_id], [table.table_id])
            renew_compatibility(connection, [table.table_id])
        measured.facts["one_table_cpu"] = once.stages[0].cpu
        for name, megabytes in connection.execute(statement("staging")):
            measured.facts[f"{name}_mb"] = float(megabytes)
        connection.execute(statement("our_pairs"))
        found = connection.execute(statement("our_fingerprint")).fetchone()
        measured.pairs, measured.fingerprint = found or (0, 0)
        tables = connection.execute("SELECT count(*) FROM coret.compatibility").fetchone()
        measured.facts["table_pairs"] = tables[0] if tables else 0


def verdicts(dsn: str, pairs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of some pairs (the lower number first) that pass by what is stored."""
    with psycopg.connect(dsn) as connection:
        connection.execute(statement("our_pairs"))
        asked = {"lows": [low for low, _ in pairs], "highs": [high for _, high in pairs]}
        return set(connection.execute(statement("our_verdicts"), asked).fetchall())


def _discover(database: Database, connection: psycopg.Connection, meter: Meter) -> list[int]:
    """Do what coret_pg.offline.refresh does in its steps that join discovery needs.

    With one worker, so that CPU seconds compare. Returns the ids of the tables.
    """
    suit_refresh(connection)
    here = connection.execute("SELECT source_id FROM coret.source WHERE kind = 'here'").fetchone()
    with closing(PostgresSource(database, here[0] if here else 1)) as source:
        with meter.stage("catalog"):
            sync_catalog(connection, source)
        ids = [row[0] for row in connection.execute("SELECT table_id FROM coret.catalog_table")]
        with meter.stage("staging"):
            for table in read_tables(connection, ids):
                profile_table(connection, source, table)
            connection.execute(
                "ANALYZE coret.column_profile, coret.column_keys, coret.catalog_column"
            )
    ids.sort()
    with meter.stage("inclusion"):
        for start in range(0, len(ids), _INCLUSION_BATCH):
            renew_inclusions(connection, ids[start : start + _INCLUSION_BATCH], ids)
        connection.execute("ANALYZE coret.inclusion")
    with meter.stage("scoring"):
        for start in range(0, len(ids), _COMPATIBILITY_BATCH):
            end = start + _COMPATIBILITY_BATCH
            renew_compatibility(connection, ids[start:end], ids[end:])
        connection.execute("ANALYZE coret.compatibility")
    return ids
