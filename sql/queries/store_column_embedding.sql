-- Store a column header's embedding.
INSERT INTO coret.column_embedding (model_id, column_id, embedding)
VALUES (%(model_id)s, %(column_id)s, %(embedding)s)
ON CONFLICT (model_id, column_id) DO UPDATE SET embedding = excluded.embedding
