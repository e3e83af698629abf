-- The column headers of some tables.
SELECT c.column_id, t.table_name, c.column_name
FROM coret.catalog_column AS c JOIN coret.catalog_table AS t USING (table_id)
WHERE t.table_id = ANY (%(table_ids)s) ORDER BY c.column_id
