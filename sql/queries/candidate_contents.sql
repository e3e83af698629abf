-- What a chat model is shown of some tables, each under its label.
SELECT t.table_id, coret.selection_payload(t.table_id, n.label, %(is_remote)s)
FROM unnest(%(table_ids)s::bigint[], %(labels)s::text[]) AS n(table_id, label)
JOIN coret.catalog_table AS t USING (table_id)
