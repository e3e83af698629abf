-- Write down what came of a request, unless another worker has taken it since.
UPDATE coret.request
SET state = %(state)s, answer = %(answer)s, problem = %(problem)s, remedy = %(remedy)s, answered_at = clock_timestamp()
WHERE request_id = %(request_id)s AND state = 'taken' AND attempts = %(attempts)s
