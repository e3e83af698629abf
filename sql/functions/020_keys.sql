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

CREATE OR REPLACE FUNCTION coret.holds_probes(sup bigint[], probes bigint[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    -- width_bucket is a binary search: the position of the last key <= the probe.
    SELECT NOT EXISTS (SELECT FROM unnest(probes) AS probe
                       WHERE sup[width_bucket(probe, sup)] IS DISTINCT FROM probe);
END;
COMMENT ON FUNCTION coret.holds_probes(bigint[], bigint[]) IS
    'Whether every probe is among the sorted keys, by binary search.';

CREATE OR REPLACE FUNCTION coret.holds_interval(sup bigint[], min_key bigint, max_key bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    -- The keys are distinct and sorted: all of min..max are there if both ends are, that far apart.
    SELECT coalesce(sup[width_bucket(min_key, sup)] = min_key
                    AND sup[width_bucket(max_key, sup)] = max_key
                    AND width_bucket(max_key, sup) - width_bucket(min_key, sup) = max_key - min_key, false);
END;
COMMENT ON FUNCTION coret.holds_interval(bigint[], bigint, bigint) IS
    'Whether the sorted keys hold every whole number from min_key to max_key, by two binary searches.';

CREATE OR REPLACE FUNCTION coret.holds_keys(sup bigint[], sub bigint[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    SELECT NOT EXISTS (SELECT unnest(sub) EXCEPT SELECT unnest(sup));
END;
COMMENT ON FUNCTION coret.holds_keys(bigint[], bigint[]) IS 'Whether every key of sub is among sup: exact, by a set operation.';
