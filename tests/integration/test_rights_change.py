"""Rights that hold: beside nearer tables, after a revoke, and after a dump and its restoration."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg

from coret_pg.offline.catalog import sync_catalog
from coret_pg.offline.source import PostgresSource
from tests import roles
from tests.conftest import Server
from tests.plans import load_auto_explain, plans_told
from tests.rights import (
    OF_THE_MOMENT,
    QUESTION,
    Pool,
    all_of,
    ids_of,
    matrix,
    visible_tables,
)
from tests.roles import as_role, found_in, role_name, seen_by, unseen_by

# --- the nearest tables are somebody else's


def test_k_candidates_in_spite_of_nearer_tables_one_may_not_see(pool: Pool) -> None:
    with as_role(pool.dsn, "superuser") as connection, connection.transaction(force_rollback=True):
        question = _crowd(connection, hidden=30, visible=12)
        connection.execute(f"SET LOCAL ROLE {role_name('full')}".encode())
        found = connection.execute(
            "SELECT table_name FROM coret.candidates(%s::vector, 10)", [question]
        ).fetchall()
        assert [row[0] for row in found] == [f"seen{n}" for n in range(1, 11)]


def test_k_candidates_by_the_index_too(pool: Pool) -> None:
    """Also where the index gives up before it has met a table that the reader may see."""
    with as_role(pool.dsn, "superuser") as connection:
        load_auto_explain(connection)
        try:
            with plans_told(connection) as plans:
                question = _crowd(connection, hidden=2100, visible=20)
                connection.execute("ANALYZE coret.table_embedding, coret.catalog_table")
                connection.execute(f"SET LOCAL ROLE {role_name('full')}".encode())
                for most in (20000, 1):
                    connection.execute(f"SET LOCAL hnsw.max_scan_tuples = {most}".encode())
                    found = connection.execute(
                        "SELECT table_name FROM coret.candidates(%s::vector, 10)", [question]
                    ).fetchall()
                    assert [row[0] for row in found] == [f"seen{n}" for n in range(1, 11)]
        finally:
            connection.execute("ANALYZE coret.table_embedding, coret.catalog_table")
    assert "using table_embedding_hnsw_" in "\n".join(plans)


def _crowd(connection: psycopg.Connection, *, hidden: int, visible: int) -> str:
    """Put tables around a question: hidden ones near it, visible ones from seen1 on behind them."""
    connection.execute(
        f"""
        CREATE SCHEMA crowd; GRANT USAGE ON SCHEMA crowd TO {role_name("full")};
        DO $$ BEGIN
            FOR n IN 1..{visible} LOOP
                EXECUTE format('CREATE TABLE crowd.seen%s (a int); GRANT SELECT ON crowd.seen%s TO {role_name("full")}', n, n);
            END LOOP;
        END $$;
        INSERT INTO coret.catalog_table (source_id, table_oid, schema_name, table_name, kind, definition_hash)
        SELECT 1, to_regclass('crowd.seen' || n), 'crowd', 'seen' || n, 'table', '' FROM generate_series(1, {visible}) n
        UNION ALL SELECT 1, 'orchard.sorbtab'::regclass, 'crowd', 'unseen' || n, 'table', '' FROM generate_series(1, {hidden}) n;
        INSERT INTO coret.table_embedding (model_id, table_id, embedding, was_cut)
        SELECT (SELECT model_id FROM coret.embedding_model WHERE is_active), t.table_id,
               -- In the plane of the first two axes, by their angle.
               format('[%s,%s,0,0,0,0,0,0]', cos(x.angle), sin(x.angle))::vector, false
        FROM coret.catalog_table t
        CROSS JOIN LATERAL (SELECT substring(t.table_name FROM '[0-9]+')::float8 AS n) AS n
        CROSS JOIN LATERAL (SELECT CASE WHEN t.table_name LIKE 'seen%' THEN 0.5 + n.n / 1000 ELSE n.n / 10000 END AS angle) AS x
        WHERE t.schema_name = 'crowd';
        """.encode()
    )
    return "[1,0,0,0,0,0,0,0]"


# --- rights that change, and tables that change their place


def test_what_may_no_longer_be_read_leaves_old_answers(pool: Pool) -> None:
    full = role_name("full")
    with as_role(pool.dsn, "superuser") as connection:
        (retrieval,) = ids_of(
            connection,
            "SELECT retrieval_id FROM coret.retrieval WHERE question = 'zqfull orchards'",
        )

        def shown() -> str:
            connection.execute(f"SET LOCAL ROLE {full}".encode())
            rows = [
                connection.execute(statement, [retrieval]).fetchall()
                for statement in (
                    "SELECT * FROM coret.explain(%s)",
                    "SELECT * FROM coret.explain(%s, 'json')",
                    "SELECT * FROM coret.retrieval_table WHERE retrieval_id = %s",
                )
            ]
            connection.execute("RESET ROLE")
            return str(rows)

        with connection.transaction(force_rollback=True):
            before = shown()
            assert {"medlartab", "quincetab"} <= set(found_in(before, pool.known["medlar"].of_name | pool.known["quince"].of_name))  # fmt: skip
            assert "medlartab.quincekey" in before or "'quincekey'" in before
            connection.execute(f"REVOKE SELECT ON orchard.medlartab FROM {full}".encode())
            # Nor as the partner of another one.
            assert found_in(shown(), pool.known["medlar"].all) == []
        with connection.transaction(force_rollback=True):
            # Nor where the columns were not noted.
            connection.execute(
                f"UPDATE coret.retrieval_table SET own_columns = NULL, partner_columns = NULL;"
                f"REVOKE SELECT ON orchard.medlartab FROM {full}".encode()
            )
            assert found_in(shown(), pool.known["medlar"].all) == []
        with connection.transaction(force_rollback=True):
            connection.execute(
                f"REVOKE SELECT ON orchard.medlartab FROM {full};"
                f"GRANT SELECT (medlarkey) ON orchard.medlartab TO {full}".encode()
            )
            # The column that it is joined by is read no more.
            assert "quincekey" not in shown()


def test_an_oid_that_has_become_another_tables_gives_nothing_away(pool: Pool) -> None:
    """As in a database that a dump was restored into, until the next refresh."""
    with as_role(pool.dsn, "superuser") as connection, connection.transaction(force_rollback=True):
        connection.execute(
            "UPDATE coret.catalog_table SET table_oid = 'orchard.quincetab'::regclass WHERE table_name = 'sorbtab'"
        )
        ids = ids_of(connection, "SELECT table_id FROM coret.catalog_table")
        connection.execute(f"SET LOCAL ROLE {role_name('full')}".encode())
        assert "sorbtab" not in visible_tables(connection)
        got = [
            connection.execute(statement.encode()).fetchall()
            for statement in (
                "SELECT * FROM coret.catalog_column",
                "SELECT * FROM coret.stale",
                "SELECT * FROM coret.tables_holding('{zvosorba,zvoquincea}')",
                "SELECT * FROM coret.join_edge",
                f"SELECT * FROM coret.compatible_among(ARRAY{ids})",
            )
        ]
        assert found_in(str(got).replace("zvosorba", ""), pool.known["sorb"].all) == []
        assert "zvoquincea" in str(got)


def test_a_dump_and_its_restoration_keep_every_right(
    pool: Pool, embedded_server: Server, tmp_path: Path
) -> None:
    dump = str(tmp_path / "dump")
    roles.run_program(
        pool.dsn, "pg_dump", "--format=custom", "--enable-row-security", f"--file={dump}",
        user=role_name("owner"),
    )  # fmt: skip
    before = matrix(pool.dsn)
    with roles.new_database(embedded_server, "rights_restored") as dsn:
        roles.run_program(dsn, "pg_restore", "--exit-on-error", dump)
        for role in ("column", "full"):
            text = "\n".join(all_of(dsn, role).values()).replace(QUESTION, "")
            assert found_in(text, unseen_by(role, pool.known)) == []
        # Tables have other OIDs here: the first step of a refresh finds them by their names.
        with (
            roles.pool_settings(dsn, pool.endpoint, "owner") as coret,
            coret.database.session(autocommit=True) as connection,
            closing(PostgresSource(coret.database, 1)) as source,
        ):
            sync_catalog(connection, source)
        after = matrix(dsn)
        assert [x for x in after if not x.startswith(OF_THE_MOMENT)] == [
            x for x in before if not x.startswith(OF_THE_MOMENT)
        ]
        for role in (*roles.READERS, "monitor", "owner"):
            text = "\n".join(all_of(dsn, role).values()).replace(QUESTION, "")
            assert found_in(text, unseen_by(role, pool.known)) == []
            assert set(found_in(text, seen_by(role, pool.known))) == seen_by(role, pool.known)
