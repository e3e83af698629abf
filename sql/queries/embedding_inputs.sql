-- What is embedded of some tables.
SELECT t.table_id, t.table_name, p.purpose, s.markdown
FROM coret.catalog_table AS t
LEFT JOIN coret.purpose AS p USING (table_id)
LEFT JOIN coret.table_snapshot AS s USING (table_id)
WHERE t.table_id = ANY (%(table_ids)s) ORDER BY t.table_id
