-- How far each step is; due under these settings, not only by what it reads.
SELECT s.step, s.tables, s.done, s.skipped, (SELECT count(*) FROM coret.due_tables(w.step, w.setting)) AS due, s.last_finished_at
FROM unnest(%(steps)s::text[], %(settings)s::text[]) WITH ORDINALITY AS w(step, setting, position)
JOIN coret.status AS s ON s.step = w.step ORDER BY w.position
