-- Megabytes of what join discovery keeps, indexes and TOAST included.
SELECT relname, pg_total_relation_size(oid) / 1048576.0
FROM pg_class
WHERE relnamespace = 'coret'::regnamespace
  AND relname IN ('column_keys', 'column_profile', 'column_phrases', 'inclusion', 'compatibility')
ORDER BY relname
