-- Joins among some tables that a person or a declared key has decided on.
SELECT c.table_a, c.table_b, c.column_a, c.column_b, c.evidence
FROM coret.compatibility AS c
WHERE c.table_a = ANY (%(table_ids)s::bigint[]) AND c.table_b = ANY (%(table_ids)s::bigint[]) AND c.evidence <> 'inferred'
