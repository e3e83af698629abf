-- The id of an embedding model, made where it is new.
WITH added AS (
    INSERT INTO coret.embedding_model (provider, model_name, revision, dimension)
    VALUES (%(provider)s, %(model_name)s, %(revision)s, %(dimension)s)
    ON CONFLICT (provider, model_name, revision, dimension) DO NOTHING
    RETURNING model_id
)
SELECT model_id FROM added
UNION ALL
SELECT model_id FROM coret.embedding_model
WHERE provider = %(provider)s AND model_name = %(model_name)s AND revision = %(revision)s AND dimension = %(dimension)s
