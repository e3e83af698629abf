-- The tables of this database that belong to the pool (as in catalog_tables.sql). A fragment of other queries.
SELECT c.oid, c.relkind, n.oid AS schema_oid, n.nspname, c.relname
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND NOT c.relispartition
  AND c.relpersistence <> 't'
  AND n.nspname NOT IN ('information_schema', 'coret', 'coret_kept')
  AND n.nspname !~ '^pg_'
  AND NOT EXISTS (SELECT FROM pg_depend AS d
                  WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
