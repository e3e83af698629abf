-- Facts about one column of a big table, in one scan and a few bytes of memory. {value}, {key}: as in profile_facts.sql.
-- Run in the source.
SELECT count(*) AS row_count, count(*) - count(value) AS null_count, left(min(value)::text, 200) AS min_value,
       left(max(value)::text, 200) AS max_value, min(key) AS min_key, max(key) AS max_key
FROM (SELECT value, CASE WHEN value IS NOT NULL THEN {key} END AS key FROM (SELECT {value} AS value FROM {table} OFFSET 0) AS scanned) AS keyed
