-- Tables that a refresh step skipped, and why.
SELECT t.schema_name || '.' || t.table_name, s.step, s.problem
FROM coret.table_step AS s JOIN coret.catalog_table AS t USING (table_id)
WHERE s.problem IS NOT NULL ORDER BY 1, 2
