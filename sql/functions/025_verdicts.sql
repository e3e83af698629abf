-- What people decided about joins, on the tables and columns of today's catalog.

CREATE OR REPLACE FUNCTION coret.column_ids(of_schema text, of_table text, names text[]) RETURNS bigint[]
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    SELECT array_agg(c.column_id ORDER BY n.place)
    FROM unnest(names) WITH ORDINALITY AS n(name, place)
    JOIN coret.catalog_table AS t ON t.schema_name = of_schema AND t.table_name = of_table
    JOIN coret.catalog_column AS c ON c.table_id = t.table_id AND c.column_name = n.name
    -- One that is gone takes a verdict out of sight, not out of coret.join_verdict.
    HAVING count(*) = cardinality(names);
END;
COMMENT ON FUNCTION coret.column_ids(text, text, text[]) IS 'Ids of a table''s columns by name, in the order given; NULL unless all of them are in the catalog.';

CREATE OR REPLACE VIEW coret.directed_verdict WITH (security_invoker) AS
    WITH decided AS (
        SELECT v.verdict, coret.column_ids(v.left_schema, v.left_table, v.left_columns) AS left_columns,
               coret.column_ids(v.right_schema, v.right_table, v.right_columns) AS right_columns
        FROM coret.join_verdict AS v
    ),
    known AS (
        SELECT d.*, l.table_id AS left_table, r.table_id AS right_table,
               cardinality(d.left_columns) = 1 AND coalesce(pl.is_unique, false) AS left_unique,
               cardinality(d.right_columns) = 1 AND coalesce(pr.is_unique, false) AS right_unique,
               (SELECT coalesce(sum(p.distinct_count), 0) FROM coret.column_profile AS p WHERE p.column_id = ANY (d.left_columns)) AS left_count,
               (SELECT coalesce(sum(p.distinct_count), 0) FROM coret.column_profile AS p WHERE p.column_id = ANY (d.right_columns)) AS right_count
        FROM decided AS d
        JOIN coret.catalog_column AS l ON l.column_id = d.left_columns[1]
        JOIN coret.catalog_column AS r ON r.column_id = d.right_columns[1]
        LEFT JOIN coret.column_profile AS pl ON pl.column_id = l.column_id
        LEFT JOIN coret.column_profile AS pr ON pr.column_id = r.column_id
    ),
    directed AS (
        -- The parent is the unique side; of two unique ones that with more values.
        SELECT verdict, left_table AS child_table, right_table AS parent_table, left_columns AS child_columns, right_columns AS parent_columns,
               left_unique AS child_unique, right_unique AS parent_unique
        FROM known WHERE (right_unique, right_count) >= (left_unique, left_count)
        UNION ALL
        SELECT verdict, right_table, left_table, right_columns, left_columns, right_unique, left_unique
        FROM known WHERE (right_unique, right_count) < (left_unique, left_count)
    )
    SELECT d.verdict, d.child_table, d.parent_table, c.child_columns, c.parent_columns, c.turned_child_columns, c.turned_parent_columns,
           d.child_unique, d.parent_unique
    FROM directed AS d
    CROSS JOIN LATERAL (
        -- As coret.join_edge has them: the child's columns ascending; turned: should the parent be the child there.
        SELECT array_agg(n.child ORDER BY n.child) AS child_columns, array_agg(n.parent ORDER BY n.child) AS parent_columns,
               array_agg(n.parent ORDER BY n.parent) AS turned_child_columns, array_agg(n.child ORDER BY n.parent) AS turned_parent_columns
        FROM unnest(d.child_columns, d.parent_columns) AS n(child, parent)) AS c;
COMMENT ON VIEW coret.directed_verdict IS 'Verdicts of people on joins whose tables and columns are in the catalog now, by their ids, from child to parent.';

CREATE OR REPLACE VIEW coret.rejected_columns WITH (security_invoker) AS
    SELECT child_columns[1] AS column_a, parent_columns[1] AS column_b
    FROM coret.directed_verdict WHERE verdict = 'rejected' AND cardinality(child_columns) = 1
    UNION ALL
    SELECT parent_columns[1], child_columns[1]
    FROM coret.directed_verdict WHERE verdict = 'rejected' AND cardinality(child_columns) = 1;
COMMENT ON VIEW coret.rejected_columns IS 'Pairs of columns that a person said are no join, each in both orders.';
