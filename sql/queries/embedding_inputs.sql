-- What the embedded text of some tables is made of.
SELECT t.table_id, t.table_name, c.column_names,
       nullif(concat_ws('. ', t.table_comment, c.comments), '') AS comments,
       coret.shown_purpose(t.table_id, %(is_remote)s) AS purpose, p.made_by,
       concat_ws(E'\n', 'Table: ' || coret.markdown_cell(t.table_name), coret.snapshot_markdown(t.table_id, %(is_remote)s)) AS markdown
FROM coret.catalog_table AS t
LEFT JOIN coret.purpose AS p USING (table_id)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(x.column_name ORDER BY x.attnum), '{}') AS column_names,
           string_agg(x.column_comment, '. ' ORDER BY x.attnum) AS comments
    FROM coret.catalog_column AS x WHERE x.table_id = t.table_id
) AS c
WHERE t.table_id = ANY (%(table_ids)s) ORDER BY t.table_id
