-- Close the jobs of processes that died.
UPDATE coret.job SET state = 'abandoned', ended_at = now() WHERE state = 'running'
