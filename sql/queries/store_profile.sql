-- Store one column's profile, its keys unless they are an interval, and the phrases of the values kept of it.
WITH profile AS (
    INSERT INTO coret.column_profile (column_id, row_count, null_count, distinct_count, min_value, max_value,
        frequent_values, key_kind, min_key, max_key, sample_shift)
    VALUES (%(column_id)s, %(row_count)s, %(null_count)s, %(distinct_count)s, %(min_value)s, %(max_value)s,
        %(frequent_values)s, %(key_kind)s, %(min_key)s, %(max_key)s, %(sample_shift)s)
    ON CONFLICT (column_id) DO UPDATE
    SET row_count = excluded.row_count, null_count = excluded.null_count, distinct_count = excluded.distinct_count,
        min_value = excluded.min_value, max_value = excluded.max_value, frequent_values = excluded.frequent_values,
        key_kind = excluded.key_kind, min_key = excluded.min_key, max_key = excluded.max_key,
        sample_shift = excluded.sample_shift, profiled_at = now()
    RETURNING column_id, is_interval
),
removed AS (
    DELETE FROM coret.column_keys WHERE column_id = %(column_id)s
      AND (%(keys)s::bigint[] IS NULL OR (SELECT is_interval FROM profile))
),
kept AS (
    INSERT INTO coret.column_keys (column_id, keys, probes)
    SELECT column_id, %(keys)s, coret.spread_probes(%(keys)s)
    FROM profile WHERE NOT coalesce(is_interval, false) AND %(keys)s::bigint[] IS NOT NULL
    ON CONFLICT (column_id) DO UPDATE SET keys = excluded.keys, probes = excluded.probes
),
forgotten AS (
    DELETE FROM coret.column_phrases WHERE column_id = %(column_id)s AND %(phrases)s::text[] IS NULL
)
INSERT INTO coret.column_phrases (column_id, phrases)
SELECT column_id, %(phrases)s FROM profile WHERE %(phrases)s::text[] IS NOT NULL
ON CONFLICT (column_id) DO UPDATE SET phrases = excluded.phrases
