-- The model whose embeddings answer questions.
SELECT model_id, provider, model_name, revision, dimension FROM coret.embedding_model WHERE is_active
