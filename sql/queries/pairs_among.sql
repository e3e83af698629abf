-- Compatible pairs among some tables, with the names of their join columns, strongest first.
SELECT c.table_a, c.table_b, ca.column_name, cb.column_name, c.score, c.cardinality
FROM coret.compatibility AS c
JOIN coret.catalog_column AS ca ON ca.column_id = c.column_a
JOIN coret.catalog_column AS cb ON cb.column_id = c.column_b
WHERE c.table_a = ANY (%(table_ids)s) AND c.table_b = ANY (%(table_ids)s) AND c.evidence <> 'rejected'
ORDER BY c.score DESC, c.table_a, c.table_b
