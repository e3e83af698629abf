-- What is known of a table when its purpose is written; payload: what a chat model is told of it.
SELECT t.table_name, t.table_comment, n.purpose AS note, coret.purpose_payload(t.table_id, %(is_remote)s) AS payload
FROM coret.catalog_table AS t
LEFT JOIN coret.purpose_note AS n USING (schema_name, table_name)
WHERE t.table_id = %(table_id)s
