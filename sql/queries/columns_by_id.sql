-- Some columns, with what a source needs to read them as keys.
SELECT c.column_id, c.table_id, c.column_name, c.type_name, p.key_kind
FROM coret.catalog_column AS c JOIN coret.column_profile AS p USING (column_id)
WHERE c.column_id = ANY (%(column_ids)s::bigint[])
