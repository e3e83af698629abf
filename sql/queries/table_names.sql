-- The names of some tables and of their columns.
SELECT t.table_id, t.table_name,
       array(SELECT c.column_name FROM coret.catalog_column AS c WHERE c.table_id = t.table_id ORDER BY c.attnum)
FROM coret.catalog_table AS t WHERE t.table_id = ANY (%(table_ids)s::bigint[])
