-- A step of a job has ended: job, step.
UPDATE coret.job_step SET ended_at = now() WHERE job_id = %s AND step = %s
