-- Pairs of tables of which one, the parent, has a first column that is not unique, and the other has columns of the same
-- names as that one and as others of the parent: a key of several columns, maybe. A side in %(changed)s, none in %(later)s.
WITH usable AS MATERIALIZED (
    SELECT c.table_id, c.column_id, c.attnum, translate(lower(c.column_name), '_ -.', '') AS plain, p.key_kind, p.is_unique, p.null_count,
           c.table_id = ANY (%(changed)s::bigint[]) AS is_changed,
           NOT EXISTS (SELECT FROM coret.catalog_column AS x WHERE x.table_id = c.table_id AND x.attnum < c.attnum) AS leads
    FROM coret.catalog_column AS c JOIN coret.column_profile AS p USING (column_id)
    WHERE p.key_kind IS NOT NULL AND p.distinct_count > 0 AND p.row_count <= %(most_rows)s
      AND c.table_id <> ALL (%(later)s::bigint[])
),
parent AS MATERIALIZED (
    SELECT u.*, l.plain AS first_plain
    FROM usable AS u JOIN usable AS l ON l.table_id = u.table_id AND l.leads AND NOT l.is_unique
    WHERE u.null_count = 0 AND NOT u.is_unique
)
SELECT child.table_id AS child_table, parent.table_id AS parent_table,
       array_agg(child.column_id ORDER BY parent.attnum) AS child_columns,
       array_agg(parent.column_id ORDER BY parent.attnum) AS parent_columns
FROM parent JOIN usable AS child ON child.plain = parent.plain AND child.key_kind = parent.key_kind AND child.table_id <> parent.table_id
WHERE child.is_changed OR parent.is_changed
GROUP BY child.table_id, parent.table_id
HAVING count(*) >= 2 AND bool_or(parent.leads)
ORDER BY parent.table_id, child.table_id
