-- The newest model of a provider and a name that was ever embedded with.
SELECT model_id FROM coret.embedding_model
WHERE provider = %(provider)s AND model_name = %(model_name)s ORDER BY added_at DESC LIMIT 1
