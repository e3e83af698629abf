-- A step of a job begins: job, step, tables.
INSERT INTO coret.job_step (job_id, step, total) VALUES (%s, %s, %s)
