-- Facts and keys of one column, in one scan. {value}: the column as it compares; {key}: its 64-bit key;
-- {most_values}: up to how many distinct values are kept, 0 for none. {longest_value}: their greatest length.
-- Run in the source; reads only.
WITH grouped AS MATERIALIZED (
    SELECT value, count(*) AS occurrences FROM (SELECT {value} AS value FROM {table}) AS scanned GROUP BY value
),
keyed AS MATERIALIZED (
    SELECT array_agg(key) AS keys
    FROM (SELECT {key} AS key FROM grouped WHERE value IS NOT NULL ORDER BY 1) AS sorted
)
SELECT coalesce(sum(occurrences), 0)::bigint AS row_count,
       coalesce(sum(occurrences) FILTER (WHERE value IS NULL), 0)::bigint AS null_count,
       count(value) AS distinct_count,
       left(min(value)::text, 200) AS min_value,
       left(max(value)::text, 200) AS max_value,
       array(SELECT left(value::text, 100) FROM grouped WHERE value IS NOT NULL
             ORDER BY occurrences DESC, value LIMIT 5) AS frequent_values,
       CASE WHEN count(value) <= {most_values} THEN
           array(SELECT value::text FROM grouped WHERE value IS NOT NULL AND length(value::text) <= {longest_value})
       END AS kept_values,
       (SELECT keys[1] FROM keyed) AS min_key,
       (SELECT keys[cardinality(keys)] FROM keyed) AS max_key,
       (SELECT keys FROM keyed) AS keys
FROM grouped
