-- Take the oldest request that nobody answers yet, for one worker.
UPDATE coret.request AS r
SET state = 'taken', taken_by = %(worker)s, taken_at = clock_timestamp(), attempts = r.attempts + 1
WHERE r.request_id = (
    SELECT w.request_id FROM coret.request AS w
    WHERE w.state = 'waiting' AND w.deadline > clock_timestamp()
    ORDER BY w.request_id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING r.request_id, r.question, r.k, r.tau, r.asked_by, r.waiter, r.attempts,
          extract(epoch FROM r.deadline - clock_timestamp())::float8 AS seconds_left
