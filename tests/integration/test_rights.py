"""Who gets what out of the schema: every role, every function and view, and every word of a pool."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests import roles
from tests.rights import (
    OF_WORKERS,
    PURE,
    QUESTION,
    ROLES,
    Pool,
    all_of,
    calls,
    session,
)
from tests.roles import as_role, found_in, seen_by, unseen_by

SNAPSHOT = Path(__file__).parent / "rights_matrix.txt"
# Read now: the tests run without variables of ours.
RENEW = bool(os.environ.get("CORET_RENEW_SNAPSHOTS"))


def test_each_role_has_the_privileges_of_the_snapshot(pool: Pool) -> None:
    """Something new belongs into the snapshot: CORET_RENEW_SNAPSHOTS=1 writes it."""
    text = "\n".join(pool.matrix) + "\n"
    if RENEW:
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text.splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_what_it_may_see_and_nothing_else(pool: Pool, role: str) -> None:
    got = {k: v.replace(QUESTION, "") for k, v in all_of(pool.dsn, role).items()}
    unseen = unseen_by(role, pool.known)
    leaks = {source: found for source, text in got.items() if (found := found_in(text, unseen))}
    assert leaks == {}
    assert set(found_in("\n".join(got.values()), seen_by(role, pool.known))) == seen_by(
        role, pool.known
    )
    # Questions of others are nobody's business.
    asked = found_in("\n".join(got.values()), frozenset({"zqowner", "zqfull", "zqrows"}))
    if role in (*roles.KEEPERS, "superuser"):
        assert asked == ["zqfull", "zqowner", "zqrows"]
    else:
        assert asked == ([f"zq{role}"] if role in ("full", "rows") else [])


def test_every_function_of_readers_is_looked_at(pool: Pool) -> None:
    with as_role(pool.dsn, "plain") as connection:
        callable_ = {
            row[0]
            for row in connection.execute(
                "SELECT proname FROM pg_proc WHERE pronamespace = 'coret'::regnamespace AND has_function_privilege(oid, 'EXECUTE')"
            ).fetchall()
        }
    assert {name for name, _, _ in calls(pool.dsn)} | PURE | OF_WORKERS == callable_


def test_an_unseen_table_is_not_told_from_one_that_is_not_there(pool: Pool) -> None:
    def told(connection: psycopg.Connection, name: str) -> list[tuple[str | None, str]]:
        answers = []
        for statement in (
            "SELECT coret.table_named(%(n)s)",
            "SELECT * FROM coret.compatible(%(n)s)",
            "SELECT * FROM coret.preview_payload(%(n)s)",
            "SELECT * FROM coret.join_path('orchard.medlartab', %(n)s)",
        ):
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(statement, {"n": name})
            answers.append((caught.value.sqlstate, roles.said(caught.value).replace(name, "")))
        return answers

    with as_role(pool.dsn, "full") as connection:
        absent = told(connection, "orchard.nothing")
        assert told(connection, "orchard.sorbtab") == absent
        assert told(connection, "cellar.marrowtab") == absent
        assert {state for state, _ in absent} == {"42P01"}


@pytest.mark.parametrize("role", ["plain", "column", "rows", "full"])
def test_a_function_of_the_readers_own_is_shown_no_hidden_row(pool: Pool, role: str) -> None:
    """The cheapest condition is tried first, unless a barrier keeps it from rows that are left out."""
    with session(pool.dsn, role) as (connection, told):
        connection.execute(
            "CREATE FUNCTION pg_temp.peek(value text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
            " AS $$ BEGIN RAISE NOTICE '%', value; RETURN true; END $$"
        )
        for relation, _, columns in roles.relations(connection):
            for column in roles.readable_columns(connection, relation, columns):
                connection.execute(
                    sql.SQL("SELECT 1 FROM coret.{} WHERE pg_temp.peek({}::text)").format(
                        sql.Identifier(relation), sql.Identifier(column)
                    )
                )
        peeked = "\n".join(told).replace(QUESTION, "")
    assert found_in(peeked, unseen_by(role, pool.known)) == []
    assert "fake" in peeked


# --- what the whole rests on


def test_few_functions_have_their_owners_rights_and_none_is_open_to_all(pool: Pool) -> None:
    with as_role(pool.dsn, "superuser") as connection:
        definers = dict(
            connection.execute(
                "SELECT proname, (SELECT setting FROM unnest(proconfig) AS setting WHERE setting LIKE 'search_path=%')"
                " FROM pg_proc WHERE pronamespace = 'coret'::regnamespace AND prosecdef"
            ).fetchall()
        )
        # Another's functions and types are never found first: temporary ones last, none of public
        # but where pgvector is needed.
        assert definers == {
            "ask_worker": "search_path=pg_catalog, pg_temp",
            "tables_holding_as": "search_path=pg_catalog, pg_temp",
            "compatible_among_as": "search_path=pg_catalog, pg_temp",
            "analyze_tables": "search_path=pg_catalog, pg_temp",
            "build_hnsw_index": "search_path=pg_catalog, public, pg_temp",
        }
        open_to_all = connection.execute(
            "SELECT p.oid::regprocedure::text FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a"
            " WHERE p.pronamespace = 'coret'::regnamespace AND a.grantee = 0"
            " UNION ALL SELECT c.oid::regclass::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a"
            " WHERE c.relnamespace = 'coret'::regnamespace AND a.grantee = 0"
            " UNION ALL SELECT n.nspname FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a WHERE n.nspname = 'coret' AND a.grantee = 0"
        ).fetchall()
        assert open_to_all == []


def test_row_level_security_is_forced_and_has_policies_everywhere(pool: Pool) -> None:
    with as_role(pool.dsn, "superuser") as connection:
        unforced = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'coret'::regnamespace AND relkind IN ('r', 'p') AND NOT (relrowsecurity AND relforcerowsecurity)"
        ).fetchall()
        assert unforced == [("schema_version",)]
        # A view with its owner's rights shows readers what row-level security would not.
        own_rights = connection.execute(
            "SELECT relname, coalesce(reloptions::text, '') FROM pg_class WHERE relnamespace = 'coret'::regnamespace AND relkind = 'v'"
            " AND NOT coalesce(reloptions::text LIKE '%security_invoker=%', false) ORDER BY 1"
        ).fetchall()
        assert [row[0] for row in own_rights] == [
            "metrics", "seal", "stale", "status", "step_input", "worker",
        ]  # fmt: skip
        assert {name for name, options in own_rights if "security_barrier" in options} == {
            "seal", "stale",
        }  # fmt: skip
        keepers = connection.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'coret'::regnamespace AND c.relrowsecurity"
            " AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'keepers')"
        ).fetchall()
        assert keepers == []
