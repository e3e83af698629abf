-- Facts about one column of a big table, in one scan and a few bytes of memory. {value}, {shown_least}, {shown_greatest}: as in
-- profile_facts.sql; {value_key}: the key of `value`. Run in the source.
SELECT f.row_count, f.null_count, left({shown_least}, 200) AS min_value, left({shown_greatest}, 200) AS max_value, f.min_key, f.max_key
FROM (
    SELECT count(*) AS row_count, count(*) - count(value) AS null_count, min(value) AS least, max(value) AS greatest,
           min(key) AS min_key, max(key) AS max_key
    FROM (SELECT value, CASE WHEN value IS NOT NULL THEN {value_key} END AS key
          FROM (SELECT {value} AS value FROM {table} OFFSET 0) AS scanned) AS keyed
) AS f
