-- Facts about one column, in one scan and without keeping its values. {value}: the column as it compares; {key}: the
-- 64-bit key of `value`; {keys}: the sorted keys of all values, or NULL where they may not be needed; {values}: the short values, likewise. Run in the source.
SELECT f.row_count, f.null_count, f.distinct_count, left(f.least::text, 200) AS min_value, left(f.greatest::text, 200) AS max_value,
       coalesce(f.repeated, '{{}}') AS repeated_values, f.keys, f.few_values,
       CASE WHEN f.keys IS NULL THEN (SELECT {key} FROM (VALUES (f.least)) AS v(value)) ELSE f.keys[1] END AS min_key,
       CASE WHEN f.keys IS NULL THEN (SELECT {key} FROM (VALUES (f.greatest)) AS v(value)) ELSE f.keys[f.distinct_count] END AS max_key
FROM (
    SELECT coalesce(sum(occurrences), 0)::bigint AS row_count,
           coalesce(sum(occurrences) FILTER (WHERE value IS NULL), 0)::bigint AS null_count,
           count(value) AS distinct_count, min(value) AS least, max(value) AS greatest,
           -- Most columns repeat few values or have few: sorting all would cost more than all the rest.
           (array_agg(left(value::text, 100) ORDER BY occurrences DESC, value) FILTER (WHERE occurrences > 1 AND value IS NOT NULL))[1:5] AS repeated,
           {keys} AS keys, {values} AS few_values
    FROM (SELECT value, count(*) AS occurrences FROM (SELECT {value} AS value FROM {table}) AS scanned GROUP BY value) AS grouped
) AS f
