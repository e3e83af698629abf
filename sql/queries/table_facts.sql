-- What is known of a table when its purpose is written.
SELECT t.table_name, t.table_comment, s.markdown, n.purpose AS note
FROM coret.catalog_table AS t
LEFT JOIN coret.table_snapshot AS s USING (table_id)
LEFT JOIN coret.purpose_note AS n USING (schema_name, table_name)
WHERE t.table_id = %(table_id)s
