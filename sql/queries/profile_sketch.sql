-- The keys of one column of a big table whose hash ends in {shift} zero bits, and how they repeat: the same keys are kept
-- of every column, so that two sketches compare. {value}, {shown}: as in profile_facts.sql; {value_key}: the key of `value`. Run in the source.
SELECT count(*) AS found, array_agg(key ORDER BY key) AS keys, coalesce(bool_and(occurrences = 1), false) AS is_unique,
       coalesce((array_agg(left({shown}, 100) ORDER BY occurrences DESC, value) FILTER (WHERE occurrences > 1))[1:5], ARRAY[]::text[]) AS repeated_values
FROM (
    SELECT key, min(value) AS value, count(*) AS occurrences
    FROM (SELECT value, {value_key} AS key FROM (SELECT {value} AS value FROM {table} OFFSET 0) AS scanned WHERE value IS NOT NULL) AS keyed
    WHERE hashint8extended(key, 0) & ((1::bigint << {shift}) - 1) = 0
    GROUP BY key
) AS grouped
