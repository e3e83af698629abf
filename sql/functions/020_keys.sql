-- Inclusion of one sorted set of distinct 64-bit keys in another.

CREATE OR REPLACE FUNCTION coret.spread_probes(keys bigint[], wanted integer DEFAULT 8) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    SELECT CASE WHEN cardinality(keys) <= wanted THEN keys
                ELSE (SELECT array_agg(keys[1 + (i * (cardinality(keys) - 1)::bigint) / (wanted - 1)] ORDER BY i)
                      FROM generate_series(0, wanted - 1) AS i) END;
END;
COMMENT ON FUNCTION coret.spread_probes(bigint[], integer) IS
    'Up to so many keys of a sorted set, from its first to its last, evenly spread: a cheap test that a set is NOT included.';
