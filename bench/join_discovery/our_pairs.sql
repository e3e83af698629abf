-- Every column pair that passes by what coret stores, numbered as columns.sql does.
CREATE TEMPORARY VIEW our_pair AS
WITH numbered AS MATERIALIZED (
    SELECT c.column_id, row_number() OVER (ORDER BY t.schema_name COLLATE "C", t.table_name COLLATE "C", c.attnum) AS number
    FROM coret.catalog_column AS c JOIN coret.catalog_table AS t USING (table_id)
)
SELECT least(sub.number, sup.number) AS low, greatest(sub.number, sup.number) AS high
FROM coret.scored_pairs(array(SELECT table_id FROM coret.catalog_table)) AS p
JOIN numbered AS sub ON sub.column_id = p.sub_column
JOIN numbered AS sup ON sup.column_id = p.sup_column
