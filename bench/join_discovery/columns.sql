-- Every column of the generated pool, numbered.
SELECT row_number() OVER by_name AS number, dense_rank() OVER (ORDER BY n.nspname, c.relname) AS table_number,
       n.nspname, c.relname, a.attname, format_type(a.atttypid, NULL)
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = 'r' AND n.nspname LIKE 'pool\_%'
WINDOW by_name AS (ORDER BY n.nspname, c.relname, a.attnum)
ORDER BY number
