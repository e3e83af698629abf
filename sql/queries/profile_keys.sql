-- The sorted keys of one column's distinct values. {value}, {value_key}: as in profile_sketch.sql. Run in the source.
SELECT array_agg(key ORDER BY key)
FROM (SELECT {value_key} AS key FROM (SELECT DISTINCT {value} AS value FROM {table}) AS found WHERE value IS NOT NULL) AS keyed
