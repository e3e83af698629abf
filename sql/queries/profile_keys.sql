-- The sorted keys of one column's distinct values. {value}, {key}: as in profile_facts.sql. Run in the source.
SELECT array_agg(key ORDER BY key)
FROM (SELECT {key} AS key FROM (SELECT DISTINCT {value} AS value FROM {table}) AS found WHERE value IS NOT NULL) AS keyed
