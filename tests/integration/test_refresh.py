"""Refresh: what the catalog holds, what is due, and what a table that can't be read does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from coret_pg import Coret
from coret_pg.errors import DatabaseError, PoolError
from coret_pg.offline.progress import Unwatched
from coret_pg.offline.refresh import STEPS, RefreshReport
from tests.fake_endpoint import FakeEndpoint
from tests.integration.test_schema import drop_role, role_dsn

_ALL_TABLES = "SELECT schema_name || '.' || table_name FROM coret.catalog_table"


def one(connection: psycopg.Connection, query: str, *parameters: Any) -> Any:
    row = connection.execute(query.encode(), parameters or None).fetchone()
    return row[0] if row else None


def names(connection: psycopg.Connection) -> set[str]:
    return {row[0] for row in connection.execute(_ALL_TABLES)}


def done(report: RefreshReport) -> dict[str, int]:
    return {step: report.steps[step].done for step in STEPS}


NOTHING = dict.fromkeys(STEPS, 0)
ALL_ONCE = dict.fromkeys(STEPS, 1)


def test_the_catalog_holds_what_a_pool_holds(dsn: str) -> None:
    with Coret(dsn) as coret, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            """
            CREATE SCHEMA "Mixed Case";
            CREATE TABLE "Mixed Case"."select" ("from" int PRIMARY KEY, "größe %s {x}" text, "a""b" json);
            INSERT INTO "Mixed Case"."select" VALUES (1, 'x', '{}'), (2, '100%', 'null');
            CREATE SCHEMA kinds;
            CREATE TYPE kinds.mood AS ENUM ('glad', 'sad');
            CREATE DOMAIN kinds.code AS varchar(9);
            CREATE TABLE kinds.types (m kinds.mood, c kinds.code, p point, v bit(3), arr int[], b bytea, f float8,
                                      ok bool, n numeric(9,2), d date, ts timestamp, tz timestamptz, u uuid, xs jsonb);
            INSERT INTO kinds.types VALUES ('glad', 'x', '(1,2)', '101', '{1}', '\\x00', 'NaN', true, 'NaN',
                                            'infinity', '-infinity', now(), gen_random_uuid(), '{}');
            CREATE TABLE kinds.parted (id int, day date) PARTITION BY RANGE (day);
            CREATE TABLE kinds.parted_2024 PARTITION OF kinds.parted FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
            INSERT INTO kinds.parted VALUES (1, '2024-02-02');
            CREATE VIEW kinds.seen AS SELECT id FROM kinds.parted;
            CREATE MATERIALIZED VIEW kinds.kept AS SELECT id FROM kinds.parted;
            CREATE MATERIALIZED VIEW kinds.unfilled AS SELECT id FROM kinds.parted WITH NO DATA;
            CREATE VIEW kinds.failing AS SELECT 1 / (id - 1) AS x FROM kinds.parted;
            CREATE TABLE kinds.nothing ();
            CREATE TEMP TABLE fleeting (x int);
            COMMENT ON TABLE kinds.types IS 'Every type.'
            """
        )
        coret.init()
        report = coret.refresh()
        assert names(connection) == {
            "Mixed Case.select", "kinds.types", "kinds.parted", "kinds.seen", "kinds.kept",
            "kinds.unfilled", "kinds.failing", "kinds.nothing",
        }  # fmt: skip
        # What can't be read is skipped with its reason; the rest went on.
        assert set(report.steps["profile"].skipped) == {"kinds.unfilled", "kinds.failing"}
        assert "division by zero" in report.steps["profile"].skipped["kinds.failing"]
        families = dict(
            connection.execute(
                "SELECT column_name, type_family FROM coret.catalog_column JOIN coret.catalog_table USING (table_id)"
                " WHERE table_name = 'types'"
            ).fetchall()
        )
        assert families == {
            "m": "text", "c": "text", "n": "decimal", "d": "date", "ts": "timestamp",
            "tz": "timestamptz", "u": "uuid", "p": None, "v": None, "arr": None, "b": None,
            "f": None, "ok": None, "xs": None,
        }  # fmt: skip
        assert (
            one(connection, "SELECT type_name FROM coret.catalog_column WHERE column_name = 'v'")
            == "bit(3)"
        )
        assert (
            one(
                connection,
                "SELECT distinct_count FROM coret.column_profile JOIN coret.catalog_column USING (column_id) WHERE column_name = 'größe %%s {x}'".replace(
                    "%%", "%"
                ),
            )
            == 2
        )
        assert one(connection, "SELECT count(*) FROM coret.table_embedding") == 8
        assert coret.retrieve("every type of mood").table_names[0] == "kinds.types"


def test_a_second_refresh_does_nothing_and_changes_are_found(dsn: str) -> None:
    with Coret(dsn) as coret, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.a (id int); CREATE TABLE s.b (id int);"
            "INSERT INTO s.a SELECT generate_series(1, 5); INSERT INTO s.b SELECT generate_series(1, 3)"
        )
        # Counters reach the others at most once a second, unless told to.
        connection.execute("SELECT pg_stat_force_next_flush()")
        coret.init()
        assert done(coret.refresh()) == dict.fromkeys(STEPS, 2)
        assert done(coret.refresh()) == NOTHING
        pair = "SELECT round(jaccard::numeric, 2)::float8 FROM coret.compatibility"
        assert one(connection, pair) == 0.6

        connection.execute("INSERT INTO s.b VALUES (4)")
        connection.execute("SELECT pg_stat_force_next_flush()")
        report = coret.refresh()
        assert (report.steps["profile"].done, report.steps["compatibility"].done) == (1, 1)
        assert one(connection, pair) == 0.8

        before = one(connection, "SELECT table_id FROM coret.catalog_table WHERE table_name = 'b'")
        connection.execute("ALTER TABLE s.b RENAME TO renamed")
        assert coret.refresh().catalog.changed == 1
        assert (
            one(connection, "SELECT table_id FROM coret.catalog_table WHERE table_name = 'renamed'")
            == before
        )

        connection.execute("DROP TABLE s.a; CREATE TABLE s.a (other text)")
        report = coret.refresh()
        assert (report.catalog.added, report.catalog.changed, report.catalog.removed) == (0, 1, 0)
        assert one(connection, "SELECT count(*) FROM coret.compatibility") == 0
        assert (
            one(
                connection,
                "SELECT string_agg(column_name, ',') FROM coret.catalog_column WHERE table_id <> %s",
                before,
            )
            == "other"
        )

        connection.execute(
            "ALTER TABLE s.a RENAME TO x; ALTER TABLE s.renamed RENAME TO a; ALTER TABLE s.x RENAME TO renamed"
        )
        coret.refresh()
        assert (
            one(
                connection, "SELECT table_name FROM coret.catalog_table WHERE table_id = %s", before
            )
            == "a"
        )

        connection.execute("DROP TABLE s.renamed")
        assert coret.refresh().catalog.removed == 1
        assert names(connection) == {"s.a"}
        assert done(coret.refresh(full=True)) == ALL_ONCE


class _Killed(Exception):
    pass


class _KilledAt(Unwatched):
    """Stop the run in the middle of a step, as a kill would."""

    def __init__(self, step: str, after: int) -> None:
        self.step, self.left = step, after

    def advance(self, step: str, count: int = 1) -> None:
        if step == self.step:
            self.left -= 1
            if self.left == 0:
                raise _Killed


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_was_stopped_goes_on_where_it_was(demo_dsn: str, step: str) -> None:
    contents = "SELECT table_id, step, input_hash FROM coret.table_step ORDER BY 1, 2"
    scores = (
        "SELECT table_a, table_b, column_a, column_b, score FROM coret.compatibility ORDER BY 1, 2"
    )
    with Coret(demo_dsn) as coret, psycopg.connect(demo_dsn, autocommit=True) as connection:
        # A copied database has new statistics, so its rows may have changed for all we know.
        coret.refresh()
        whole = connection.execute(contents).fetchall()
        pairs = connection.execute(scores).fetchall()
        connection.execute("DELETE FROM coret.table_step WHERE step = %s", [step])
        with pytest.raises(_Killed):
            coret.refresh(progress=_KilledAt(step, 1))
        assert (
            one(connection, "SELECT state FROM coret.job ORDER BY job_id DESC LIMIT 1") == "failed"
        )
        already = one(connection, "SELECT count(*) FROM coret.table_step WHERE step = %s", step)
        assert already > 0
        report = coret.refresh()
        assert report.steps[step].done == 46 - already
        assert connection.execute(contents).fetchall() == whole
        assert connection.execute(scores).fetchall() == pairs


def test_two_at_once_are_refused_and_a_dead_job_is_abandoned(demo_dsn: str) -> None:
    with Coret(demo_dsn) as coret, psycopg.connect(demo_dsn, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s, 1)", [0x636F72])
        with pytest.raises(DatabaseError, match="Another refresh"):
            coret.refresh()
        other.execute("SELECT pg_advisory_unlock_all()")
        other.execute("INSERT INTO coret.job (kind, state) VALUES ('refresh', 'running')")
        coret.refresh()
        states = [r[0] for r in other.execute("SELECT state FROM coret.job ORDER BY job_id")]
        assert states == ["finished", "abandoned", "finished"]


def test_tables_that_are_locked_slow_or_forbidden_are_skipped(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as superuser:
        plain = role_dsn(superuser, "plain_refresher")
        superuser.execute("CREATE EXTENSION vector")
        superuser.execute(
            sql.SQL("GRANT CREATE ON DATABASE {} TO plain_refresher").format(
                sql.Identifier(superuser.info.dbname)
            )
        )
        superuser.execute(
            "CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO plain_refresher;"
            "CREATE TABLE s.open (id int); CREATE TABLE s.closed (id int); CREATE TABLE s.locked (id int);"
            "CREATE VIEW s.slow AS SELECT 1 AS id FROM (SELECT pg_sleep(9)) AS x;"
            "GRANT SELECT ON s.open, s.locked, s.slow TO plain_refresher"
        )
        with (
            psycopg.connect(dsn) as locker,
            Coret(plain, statement_timeout_ms=300, lock_timeout_ms=100) as coret,
        ):
            locker.execute("LOCK TABLE s.locked IN ACCESS EXCLUSIVE MODE")
            coret.init()
            skipped = coret.refresh().steps["profile"].skipped
            assert {name: reason.split(": ", 1)[1] for name, reason in skipped.items()} == {
                "s.closed": "no privilege: permission denied for table closed",
                "s.locked": "it stayed locked longer than the lock timeout",
                "s.slow": "reading it took longer than the statement timeout",
            }
            locker.rollback()
            # Skipped is tried again, done is not.
            assert coret.refresh().steps["profile"].done == 1
    drop_role(dsn, "plain_refresher")


def test_a_view_beyond_what_the_server_can_is_skipped(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS id;"
            "CREATE VIEW s.huge AS SELECT repeat('ab', 600000000) AS text"
        )
    with Coret(dsn) as coret:
        coret.init()
        steps = coret.refresh().steps
    assert set(steps["profile"].skipped) == {"s.huge"}
    assert "too much for the server" in steps["profile"].skipped["s.huge"]
    assert steps["profile"].done == 1


def test_profiles_are_made_anew_for_another_size_of_sketches(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS id")
    with Coret(dsn) as coret:
        coret.init()
        coret.refresh()
        assert coret.refresh().steps["profile"].done == 0
    with Coret(dsn, sketch_rows=5_000) as coret:
        steps = coret.refresh().steps
    assert (steps["profile"].done, steps["embedding"].done) == (1, 0)


def test_reading_cannot_write(demo_dsn: str) -> None:
    from coret_pg.database.connection import limit_reads

    with Coret(demo_dsn) as coret, coret.database.session(autocommit=True) as connection:
        limit_reads(connection, coret.settings)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("CREATE TABLE public.left_behind (x int)")


def test_an_empty_pool_is_told(dsn: str) -> None:
    with Coret(dsn) as coret:
        coret.init()
        with pytest.raises(PoolError, match="coret load"):
            coret.refresh()
        with pytest.raises(PoolError, match="coret refresh"):
            coret.retrieve("anything")


def test_purposes_by_a_person_by_a_model_and_composed(dsn: str) -> None:
    with FakeEndpoint() as endpoint, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.a (id int); CREATE TABLE s.b (id int); CREATE TABLE s.c (id int)"
        )
        endpoint.answer("Rows of the first kind.")
        endpoint.fail(401)
        with Coret(dsn, llm_model="m", llm_base_url=endpoint.base_url, llm_max_retries=0) as coret:
            coret.init()
            connection.execute(
                "INSERT INTO coret.purpose_note (schema_name, table_name, purpose) VALUES ('s', 'c', 'Mine.')"
            )
            report = coret.refresh()
            made = dict(
                connection.execute(
                    "SELECT table_name, made_by || ': ' || purpose FROM coret.purpose JOIN coret.catalog_table USING (table_id)"
                ).fetchall()
            )
            assert made == {
                "a": "llm: Rows of the first kind.",
                "b": "composed: b with id.",
                "c": "person: Mine.",
            }
            assert set(report.steps["purpose"].skipped) == {"s.b"}
            outcomes = [
                r[0]
                for r in connection.execute("SELECT outcome FROM coret.llm_call ORDER BY call_id")
            ]
            assert outcomes[0] == "ok"
            assert "401" in outcomes[1] or "key" in outcomes[1]
            # The next refresh asks again for the one that failed, and for no other.
            endpoint.answer("Rows of the second kind.")
            assert coret.refresh().steps["purpose"].done == 1


def test_another_model_is_built_beside_the_active_one(demo_dsn: str, tmp_path: Path) -> None:
    with FakeEndpoint() as endpoint, psycopg.connect(demo_dsn, autocommit=True) as connection:
        active = "SELECT model_name FROM coret.embedding_model WHERE is_active"
        assert one(connection, active) == "all-MiniLM-L6-v2"
        with Coret(
            demo_dsn,
            embedding_provider="openai",
            embedding_model="other",
            embedding_base_url=endpoint.base_url,
        ) as coret:
            coret.refresh()
            assert one(connection, active) == "other"
            assert coret.retrieve("teachers").tables
        assert one(connection, "SELECT count(*) FROM coret.embedding_model") == 2
        indexes = one(
            connection, "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'"
        )
        assert indexes == 2
