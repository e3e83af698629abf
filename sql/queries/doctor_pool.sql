-- The catalog against the tables that are there now: catalogued, gone (or renamed, recreated), new; of those the role may see there.
-- relations: doctor_relations.sql. By join, not to_regclass: that fails for schemas the role may not use.
WITH here AS (
    SELECT t.table_oid, t.schema_name, t.table_name
    FROM coret.catalog_table AS t JOIN coret.source AS s USING (source_id) WHERE s.kind = 'here'
)
SELECT (SELECT count(*) FROM coret.catalog_table) AS tables,
       count(*) FILTER (WHERE r.oid IS NULL) AS vanished,
       count(*) FILTER (WHERE h.table_oid IS NULL) AS added
FROM here AS h
FULL JOIN (SELECT x.* FROM ({relations}) AS x WHERE coret.sees_all() OR coret.reads_table(x.oid)) AS r
    ON r.oid = h.table_oid AND r.nspname = h.schema_name AND r.relname = h.table_name
