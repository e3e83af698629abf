-- How many tables the pool has, as it was when last analysed: to count them costs a look at the rights for each.
SELECT CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint ELSE (SELECT count(*) FROM coret.catalog_table) END
FROM pg_class AS c WHERE c.oid = 'coret.catalog_table'::regclass
