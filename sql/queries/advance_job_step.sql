-- How far a step is: done, skipped, job, step.
UPDATE coret.job_step SET done = %s, skipped = %s WHERE job_id = %s AND step = %s
