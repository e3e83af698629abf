-- A job's end: state, reason, job.
UPDATE coret.job SET state = %s, problem = %s, ended_at = now() WHERE job_id = %s
