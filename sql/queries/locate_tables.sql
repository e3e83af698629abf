-- The nearest of some tables to a question, by exact cosine; those that have vanished are left out.
SELECT t.table_id, t.schema_name, t.table_name, (1 - (e.embedding <=> %(question)s))::real AS relevance
FROM coret.catalog_table AS t
JOIN coret.table_embedding AS e USING (table_id)
JOIN coret.embedding_model AS m ON m.model_id = e.model_id AND m.is_active
WHERE t.table_id = ANY (%(table_ids)s::bigint[]) AND coret.is_current(t.table_oid, t.schema_name, t.table_name)
ORDER BY relevance DESC, t.table_id LIMIT %(most)s
