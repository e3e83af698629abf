-- Compatible pairs among some tables, with the names of their join columns, strongest first.
SELECT c.table_a, c.table_b, ARRAY[ca.column_name] AS columns_a, ARRAY[cb.column_name] AS columns_b, c.score,
       CASE WHEN c.a_is_unique AND c.b_is_unique THEN '1:1' WHEN c.a_is_unique THEN '1:N' ELSE 'N:1' END AS cardinality
FROM coret.compatible_among(%(table_ids)s::bigint[]) AS c
JOIN coret.catalog_column AS ca ON ca.column_id = c.column_a
JOIN coret.catalog_column AS cb ON cb.column_id = c.column_b
ORDER BY c.score DESC, c.table_a, c.table_b
