-- What the role may read of the pool: all tables, those it can't read, those whose rows are filtered for it.
-- relations: doctor_relations.sql.
WITH judged AS (
    SELECT quote_ident(r.nspname) AS schema_name, quote_ident(r.nspname) || '.' || quote_ident(r.relname) AS table_name,
           has_schema_privilege(r.schema_oid, 'USAGE') AND has_table_privilege(r.oid, 'SELECT') AS is_readable,
           row_security_active(r.oid) AS is_filtered
    -- Foreign tables are never read.
    FROM ({relations}) AS r WHERE r.relkind <> 'f'
)
SELECT count(*) AS tables,
       count(*) FILTER (WHERE is_readable IS NOT TRUE) AS unreadable,
       array(SELECT table_name FROM judged WHERE is_readable IS NOT TRUE ORDER BY 1 LIMIT 3) AS unreadable_tables,
       array(SELECT DISTINCT schema_name FROM judged WHERE is_readable IS NOT TRUE ORDER BY 1) AS unreadable_schemas,
       count(*) FILTER (WHERE is_readable AND is_filtered) AS filtered,
       array(SELECT table_name FROM judged WHERE is_readable AND is_filtered ORDER BY 1 LIMIT 3) AS filtered_tables
FROM judged
