-- Catalogued tables by id.
SELECT table_id, schema_name, table_name, kind, estimated_rows, is_read_whole
FROM coret.catalog_table WHERE table_id = ANY (%(table_ids)s) ORDER BY table_id
