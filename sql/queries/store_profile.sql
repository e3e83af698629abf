-- Store the profiles of a table's columns, given as JSON, and the phrases of the values kept of them; keys come by store_keys.sql.
-- Of values only what the column's level keeps: of "statistics" the extremes of numbers and dates, of "names" none.
WITH given AS MATERIALIZED (
    SELECT x.column_id, x.row_count, x.null_count, x.distinct_count, x.key_kind, x.min_key, x.max_key, x.sample_shift, x.has_keys,
           CASE WHEN k.extremes THEN coret.without_secrets(x.min_value) END AS min_value,
           CASE WHEN k.extremes THEN coret.without_secrets(x.max_value) END AS max_value,
           CASE WHEN k.samples THEN coret.values_without_secrets(x.frequent_values) ELSE '{}' END AS frequent_values,
           -- Where one value is a secret, the others may be.
           CASE WHEN k.samples AND x.frequent_values || x.min_value || x.max_value
                     IS NOT DISTINCT FROM coret.values_without_secrets(x.frequent_values || x.min_value || x.max_value) THEN x.phrases END AS phrases
    FROM json_to_recordset(%(profiles)s) AS x(column_id bigint, row_count bigint, null_count bigint, distinct_count bigint,
        min_value text, max_value text, frequent_values text[], key_kind text, min_key bigint, max_key bigint, sample_shift smallint,
        phrases text, has_keys boolean)
    JOIN coret.catalog_column AS c USING (column_id)
    CROSS JOIN LATERAL (
        SELECT coalesce(c.sample_level, 'samples') IN ('masked', 'samples') AS samples,
               coalesce(c.sample_level, 'samples') IN ('masked', 'samples')
                   OR c.sample_level = 'statistics' AND c.type_family <> 'text' AS extremes
    ) AS k
),
profile AS (
    INSERT INTO coret.column_profile (column_id, row_count, null_count, distinct_count, min_value, max_value,
        frequent_values, key_kind, min_key, max_key, sample_shift)
    SELECT column_id, row_count, null_count, distinct_count, min_value, max_value,
        frequent_values, key_kind, min_key, max_key, sample_shift FROM given
    ON CONFLICT (column_id) DO UPDATE
    SET row_count = excluded.row_count, null_count = excluded.null_count, distinct_count = excluded.distinct_count,
        min_value = excluded.min_value, max_value = excluded.max_value, frequent_values = excluded.frequent_values,
        key_kind = excluded.key_kind, min_key = excluded.min_key, max_key = excluded.max_key,
        sample_shift = excluded.sample_shift, profiled_at = now()
),
removed AS (
    DELETE FROM coret.column_keys WHERE column_id IN (SELECT column_id FROM given WHERE NOT has_keys)
),
forgotten AS (
    DELETE FROM coret.column_phrases WHERE column_id IN (SELECT column_id FROM given WHERE phrases IS NULL)
)
INSERT INTO coret.column_phrases (column_id, phrases)
SELECT column_id, string_to_array(phrases, '|') FROM given WHERE phrases IS NOT NULL
ON CONFLICT (column_id) DO UPDATE SET phrases = excluded.phrases
