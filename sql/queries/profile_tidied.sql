-- The distinct values of a text column, tidied: without blanks around, in lower case. {value}: the column as it compares.
-- Run in the source.
SELECT DISTINCT lower(btrim(value)) FROM (SELECT {value} AS value FROM {table}) AS scanned WHERE value IS NOT NULL
