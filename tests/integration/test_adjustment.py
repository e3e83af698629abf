"""The two steps of the adjustment equal an oracle written from the paper's words."""

from __future__ import annotations

import random
from itertools import combinations

import psycopg
import pytest

Scores = dict[frozenset[int], float]


def _pool(connection: psycopg.Connection, rng: random.Random, tables: int) -> Scores:
    """Fill catalog and compatibility by hand: random scores between random pairs."""
    connection.execute("TRUNCATE coret.catalog_table, coret.compatibility CASCADE")
    ids = []
    for number in range(tables):
        row = connection.execute(
            "WITH t AS (INSERT INTO coret.catalog_table (source_id, table_oid, schema_name, table_name, kind, definition_hash)"
            " VALUES (1, %s, 's', %s, 'table', '') RETURNING table_id)"
            "INSERT INTO coret.catalog_column (table_id, attnum, column_name, type_name, is_not_null, header_words, header_hashes)"
            " SELECT table_id, 1, 'c', 'int', false, '{}', '{}' FROM t RETURNING table_id, column_id",
            [number + 1, f"t{number}"],
        ).fetchone()
        assert row
        ids.append(row)
    scores: Scores = {}
    for (a, ca), (b, cb) in combinations(ids, 2):
        if rng.random() < 0.4:
            score = round(rng.choice([0.1, 0.3, 0.5, 0.6, 0.8, 0.95]) + rng.random() / 100, 4)
            scores[frozenset((a, b))] = score
            connection.execute(
                "INSERT INTO coret.compatibility (table_a, table_b, column_a, column_b, score, jaccard, header_similarity, a_in_b, b_in_a, a_is_unique, b_is_unique)"
                " VALUES (%s, %s, %s, %s, %s, 0, 0, 1, 0, true, false)",
                [a, b, ca, cb, score],
            )
    return scores


def _oracle(
    relevance: dict[int, float], selected: list[int], scores: Scores, tau: float, single: bool
) -> list[tuple[int, str]]:
    def score(a: int, b: int) -> float:
        return scores.get(frozenset((a, b)), 0.0)

    def worth(group: list[int]) -> float:
        pairs = [score(a, b) for a, b in combinations(group, 2)]
        pairwise = sum(pairs) / len(pairs) if pairs else 0.0
        return pairwise + sum(relevance[t] for t in group) / len(group)

    group, added = list(selected), []
    for member in selected:
        partner = max((t for t in relevance if t != member), key=lambda t: (score(member, t), -t))
        if score(member, partner) > tau and partner not in group:
            group.append(partner)
            added.append((partner, "added by compatibility"))
    while group and (len(group) > 1 or single):
        gains = {
            t: worth([*group, t]) - worth(group)
            for t in relevance
            if t not in group and any(score(t, member) > 0 for member in group)
        }
        best = max(gains, key=lambda t: (gains[t], -t), default=None)
        if best is None or gains[best] <= 0:
            break
        group.append(best)
        added.append((best, "added by expansion"))
    return added


@pytest.mark.parametrize("seed", range(5))
def test_adjustment_equals_the_oracle(demo_dsn: str, seed: int) -> None:
    rng = random.Random(seed)
    grown = 0
    with psycopg.connect(demo_dsn, autocommit=True) as connection:
        # Scores as they come, not as values and names would make them.
        connection.execute(
            "CREATE OR REPLACE FUNCTION coret.compatible_among(table_ids bigint[])"
            " RETURNS TABLE (table_a bigint, table_b bigint, column_a bigint, column_b bigint, score real, jaccard real,"
            " header_similarity real, a_in_b real, b_in_a real, a_is_unique boolean, b_is_unique boolean, is_sampled boolean)"
            " LANGUAGE sql STABLE AS 'SELECT table_a, table_b, column_a, column_b, score, jaccard, header_similarity,"
            " a_in_b, b_in_a, a_is_unique, b_is_unique, is_sampled FROM coret.compatibility'"
        )
        for _ in range(12):
            scores = _pool(connection, rng, rng.randint(3, 10))
            ids = [r[0] for r in connection.execute("SELECT table_id FROM coret.catalog_table")]
            relevance = {t: round(rng.uniform(0.05, 0.9), 3) for t in ids}
            selected = rng.sample(ids, rng.randint(0, min(4, len(ids))))
            tau, single = rng.choice([0.3, 0.5, 0.7]), rng.random() < 0.5
            rows = connection.execute(
                "SELECT table_id, role, partner_id FROM coret.adjust(%s::bigint[], %s::real[], %s::bigint[], %s::real, %s)",
                [list(relevance), list(relevance.values()), selected, tau, single],
            ).fetchall()
            assert [(r[0], r[1]) for r in rows] == _oracle(relevance, selected, scores, tau, single)
            assert all(frozenset((r[0], r[2])) in scores for r in rows)
            grown += len(rows)
    assert grown > 0


def test_arguments_that_dont_fit_are_refused(demo_dsn: str) -> None:
    with psycopg.connect(demo_dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="not among the candidates"):
            connection.execute(
                "SELECT coret.adjust('{1}'::bigint[], '{0.5}'::real[], '{2}'::bigint[])"
            )
        with pytest.raises(
            psycopg.errors.ArraySubscriptError, match="2 candidates but 1 relevances"
        ):
            connection.execute(
                "SELECT coret.adjust('{1,2}'::bigint[], '{0.5}'::real[], '{1}'::bigint[])"
            )
