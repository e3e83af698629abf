-- The columns of the pool that can take part in a join.
SELECT c.column_id, c.table_id, t.table_name, c.column_name, p.is_unique OR p.distinct_count = 0 AS may_be_parent
FROM coret.catalog_column AS c
JOIN coret.catalog_table AS t USING (table_id)
JOIN coret.column_profile AS p USING (column_id)
WHERE p.key_kind IS NOT NULL
