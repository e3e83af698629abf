-- A new refresh job.
INSERT INTO coret.job (kind, state) VALUES ('refresh', 'running') RETURNING job_id
