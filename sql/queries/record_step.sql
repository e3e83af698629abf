-- What came of a step for a table: table, step, hash of its input, setting, why it was skipped.
INSERT INTO coret.table_step (table_id, step, input_hash, setting, problem) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (table_id, step) DO UPDATE
SET input_hash = excluded.input_hash, setting = excluded.setting, problem = excluded.problem, finished_at = now()
