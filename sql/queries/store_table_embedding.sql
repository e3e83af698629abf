-- Store a table's embedding.
INSERT INTO coret.table_embedding (model_id, table_id, embedding, was_cut)
VALUES (%(model_id)s, %(table_id)s, %(embedding)s, %(was_cut)s)
ON CONFLICT (model_id, table_id) DO UPDATE
SET embedding = excluded.embedding, was_cut = excluded.was_cut, embedded_at = now()
