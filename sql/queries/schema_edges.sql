-- The tables of some schemas and the joins among them that are as sure as asked for; a table without joins has one row.
SELECT coret.qualified_name(t.schema_name, t.table_name) AS child, e.child_columns, e.parent, e.parent_columns, e.cardinality, e.confidence, e.evidence
FROM coret.catalog_table AS t
LEFT JOIN LATERAL (
    SELECT coret.column_names(j.child_columns) AS child_columns, coret.qualified_name(p.schema_name, p.table_name) AS parent,
           coret.column_names(j.parent_columns) AS parent_columns, j.cardinality, j.confidence, j.evidence
    FROM coret.join_edge AS j JOIN coret.catalog_table AS p ON p.table_id = j.parent_table
    WHERE j.child_table = t.table_id AND p.schema_name = ANY (%(schemas)s::text[]) AND j.confidence >= %(min_confidence)s
) AS e ON true
WHERE t.schema_name = ANY (%(schemas)s::text[])
ORDER BY t.schema_name, t.table_name, e.confidence DESC, e.parent, e.child_columns, e.parent_columns
