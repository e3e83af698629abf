-- What came of a step for a table: table, step, fingerprint of its input, why it was skipped.
INSERT INTO coret.table_step (table_id, step, fingerprint, problem) VALUES (%s, %s, %s, %s)
ON CONFLICT (table_id, step) DO UPDATE
SET fingerprint = excluded.fingerprint, problem = excluded.problem, finished_at = now()
