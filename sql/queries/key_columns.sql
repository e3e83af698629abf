-- The columns of some tables whose values have keys, with the facts that the gate reads first.
SELECT c.column_id, c.table_id, t.table_name, c.column_name, p.key_kind, p.distinct_count, p.is_unique, p.min_key, p.max_key,
       NOT EXISTS (SELECT FROM coret.catalog_column AS x WHERE x.table_id = c.table_id AND x.attnum < c.attnum) AS leads
FROM coret.catalog_column AS c
JOIN coret.catalog_table AS t USING (table_id)
JOIN coret.column_profile AS p USING (column_id)
WHERE c.table_id = ANY (%(table_ids)s::bigint[]) AND p.key_kind IS NOT NULL AND p.distinct_count > 0
ORDER BY c.column_id
