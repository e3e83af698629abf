-- Give requests of workers that died to another, once; end those whose time is over; drop what nobody fetches.
WITH orphan AS (
    SELECT r.request_id FROM coret.request AS r
    WHERE r.state = 'taken' AND r.taken_by NOT IN (SELECT w.pid FROM coret.worker AS w)
    FOR UPDATE SKIP LOCKED
),
passed_on AS (
    UPDATE coret.request AS r
    SET state = CASE WHEN r.attempts < 2 THEN 'waiting' ELSE 'failed' END,
        problem = CASE WHEN r.attempts >= 2 THEN 'two workers died over this request' END,
        remedy = CASE WHEN r.attempts >= 2 THEN 'See the workers'' logs.' END
    FROM orphan AS o WHERE r.request_id = o.request_id
    RETURNING r.state
),
ended AS (
    UPDATE coret.request AS r SET state = 'cancelled'
    WHERE r.state = 'waiting' AND r.deadline < clock_timestamp()
),
dropped AS (
    DELETE FROM coret.request AS r
    WHERE r.waiter IS NOT NULL AND r.state NOT IN ('waiting', 'taken') AND r.deadline < clock_timestamp() - interval '1 minute'
       OR r.deadline < clock_timestamp() - interval '1 day'
)
SELECT count(*) FROM passed_on WHERE state = 'waiting'
