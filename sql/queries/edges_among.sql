-- Of every two of some tables the join most worth believing, surest first.
SELECT DISTINCT ON (e.table_a, e.table_b)
       e.table_a, e.table_b, a.names AS columns_a, b.names AS columns_b, 0::real AS score, e.cardinality, e.confidence, e.evidence
FROM (
    SELECT least(child_table, parent_table) AS table_a, greatest(child_table, parent_table) AS table_b,
           CASE WHEN child_table < parent_table THEN child_columns ELSE parent_columns END AS columns_a,
           CASE WHEN child_table < parent_table THEN parent_columns ELSE child_columns END AS columns_b,
           CASE WHEN child_table > parent_table AND cardinality = 'N:1' THEN '1:N' ELSE cardinality END AS cardinality, confidence, evidence
    FROM coret.join_edge
    WHERE child_table = ANY (%(table_ids)s::bigint[]) AND parent_table = ANY (%(table_ids)s::bigint[])
) AS e
CROSS JOIN LATERAL (SELECT array_agg(c.column_name ORDER BY n.place) AS names
                    FROM unnest(e.columns_a) WITH ORDINALITY AS n(column_id, place) JOIN coret.catalog_column AS c USING (column_id)) AS a
CROSS JOIN LATERAL (SELECT array_agg(c.column_name ORDER BY n.place) AS names
                    FROM unnest(e.columns_b) WITH ORDINALITY AS n(column_id, place) JOIN coret.catalog_column AS c USING (column_id)) AS b
ORDER BY e.table_a, e.table_b, e.confidence DESC, e.columns_a, e.columns_b
