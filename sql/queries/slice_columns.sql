-- The columns of some tables, as the schema slice shows them; names quoted where SQL needs it.
SELECT t.table_id, coret.qualified_name(t.schema_name, t.table_name) AS table_name, p.purpose,
       -- Of a key the reader sees all columns, or not the key.
       (SELECT array_agg(quote_ident(x.column_name) ORDER BY n.position)
        FROM coret.declared_key AS k
        CROSS JOIN LATERAL unnest(k.attnums) WITH ORDINALITY AS n(attnum, position)
        JOIN coret.catalog_column AS x ON x.table_id = k.table_id AND x.attnum = n.attnum
        WHERE k.table_id = t.table_id AND k.kind = 'primary') AS primary_key,
       quote_ident(c.column_name) AS column_name, c.type_name, c.is_not_null, c.column_comment,
       coret.shown_values(f.frequent_values, c.sample_level) AS frequent_values,
       s.kind <> 'here' OR EXISTS (
           SELECT FROM pg_attribute AS a
           WHERE a.attrelid = t.table_oid AND a.attname = c.column_name AND NOT a.attisdropped) AS is_there
FROM coret.catalog_table AS t
JOIN coret.source AS s USING (source_id)
JOIN coret.catalog_column AS c USING (table_id)
LEFT JOIN coret.purpose AS p USING (table_id)
LEFT JOIN coret.column_profile AS f USING (column_id)
WHERE t.table_id = ANY (%(table_ids)s)
ORDER BY t.table_id, c.attnum
