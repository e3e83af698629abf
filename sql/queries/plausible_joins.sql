-- Pairs of columns, child and parent, whose names (or, but for numbers and dates, whose values alone) leave a join possible:
-- a side in %(changed)s, none in %(later)s. is_included: whether all values of the child are the parent's.
WITH stem AS MATERIALIZED (
    SELECT s.*, s.table_id = ANY (%(changed)s::bigint[]) AS is_changed
    FROM pg_temp.name_stem AS s WHERE s.table_id <> ALL (%(later)s::bigint[])
),
paired AS (
    SELECT a.column_id AS child, b.column_id AS parent, true AS is_named
    FROM stem AS a JOIN stem AS b USING (stem)
    WHERE b.may_be_parent AND (a.is_own OR b.is_own) AND a.table_id <> b.table_id AND (a.is_changed OR b.is_changed)
    UNION
    SELECT d.child, d.parent, false
    FROM coret.inclusion AS i
    JOIN coret.column_profile AS p ON p.column_id = i.sub_column AND p.key_kind NOT IN ('integer', 'date')
    JOIN coret.catalog_column AS a ON a.column_id = i.sub_column
    JOIN coret.catalog_column AS b ON b.column_id = i.sup_column
    CROSS JOIN LATERAL (VALUES (i.sub_column, i.sup_column), (i.sup_column, i.sub_column)) AS d(child, parent)
    WHERE (a.table_id = ANY (%(changed)s::bigint[]) OR b.table_id = ANY (%(changed)s::bigint[]))
      AND a.table_id <> ALL (%(later)s::bigint[]) AND b.table_id <> ALL (%(later)s::bigint[])
),
usable AS MATERIALIZED (
    SELECT p.column_id, c.table_id, t.table_name, c.column_name, p.key_kind, p.distinct_count, p.is_unique, p.is_interval,
           p.min_key, p.max_key, p.sample_shift,
           p.key_kind = 'text' AND p.min_value ~ '^\s*[+-]?[0-9]' AND p.max_value ~ '^\s*[+-]?[0-9]' AS may_be_numbers,
           NOT EXISTS (SELECT FROM coret.catalog_column AS x WHERE x.table_id = c.table_id AND x.attnum < c.attnum) AS leads
    FROM coret.column_profile AS p
    JOIN coret.catalog_column AS c USING (column_id)
    JOIN coret.catalog_table AS t USING (table_id)
    WHERE p.key_kind IS NOT NULL
)
SELECT child.column_id AS child, parent.column_id AS parent, child.table_id AS child_table, parent.table_id AS parent_table,
       child.table_name AS child_table_name, child.column_name AS child_column_name,
       parent.table_name AS parent_table_name, parent.column_name AS parent_column_name,
       child.leads AS child_leads, parent.leads AS parent_leads,
       child.is_unique AS child_is_unique,
       child.key_kind = 'integer' AND parent.key_kind = 'integer' AS is_whole_number,
       child.key_kind = 'text' OR parent.key_kind = 'text' AS is_text,
       child.key_kind NOT IN ('integer', 'date') AND NOT child.may_be_numbers AS values_tell,
       f.is_included, child.distinct_count = 0 AS is_empty, child.sample_shift + parent.sample_shift > 0 AS is_sampled
FROM (SELECT w.child, w.parent, bool_or(w.is_named) AS is_named FROM paired AS w GROUP BY w.child, w.parent) AS w
JOIN usable AS child ON child.column_id = w.child
JOIN usable AS parent ON parent.column_id = w.parent
CROSS JOIN LATERAL (
    SELECT child.key_kind = parent.key_kind AND child.distinct_count > 0
           AND child.distinct_count <= parent.distinct_count
           AND child.min_key >= parent.min_key AND child.max_key <= parent.max_key
           AND (parent.is_interval
                OR EXISTS (SELECT FROM coret.inclusion AS i WHERE i.sub_column = child.column_id AND i.sup_column = parent.column_id)
                -- Of two equal sets only one order is stored.
                OR child.distinct_count = parent.distinct_count AND EXISTS (
                    SELECT FROM coret.inclusion AS i WHERE i.sub_column = parent.column_id AND i.sup_column = child.column_id)
               ) AS is_included
) AS f
WHERE CASE
    WHEN child.distinct_count = 0 AND parent.distinct_count = 0
        THEN w.is_named AND parent.leads AND child.key_kind = parent.key_kind
    ELSE parent.is_unique AND child.distinct_count > 0 AND (
        f.is_included
        -- May be nearly included: the names decide whether it is worth counting.
        OR w.is_named
           AND (child.key_kind = parent.key_kind
                OR child.may_be_numbers AND parent.key_kind = 'integer' OR child.key_kind = 'integer' AND parent.may_be_numbers)
           AND greatest(child.distinct_count, parent.distinct_count) <= %(most_counted)s
           AND child.distinct_count * %(least_share)s <= parent.distinct_count)
END
ORDER BY child.column_id, parent.column_id
