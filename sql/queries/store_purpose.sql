-- Store a table's purpose.
INSERT INTO coret.purpose (table_id, purpose, made_by, model_name, saw_samples)
VALUES (%(table_id)s, %(purpose)s, %(made_by)s, %(model_name)s, %(saw_samples)s)
ON CONFLICT (table_id) DO UPDATE
SET purpose = excluded.purpose, made_by = excluded.made_by, model_name = excluded.model_name,
    saw_samples = excluded.saw_samples, made_at = now()
