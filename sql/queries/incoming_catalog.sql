-- What a source reports of its tables, before coret.sync_catalog merges it.
CREATE TEMPORARY TABLE incoming_table (
    table_oid oid, schema_name text, table_name text, kind text, table_comment text,
    estimated_rows bigint, data_version text, definition_hash text, columns jsonb, keys jsonb
) ON COMMIT DROP
