-- Store the sampled rows of a table, given as JSON, a column at a time: none of a column whose level keeps no values.
WITH given AS MATERIALIZED (
    SELECT c.column_id, array_agg(coret.without_secrets(r.cells ->> (n.place - 1)::integer) ORDER BY r.position) AS sampled_values
    FROM unnest(%(column_ids)s::bigint[]) WITH ORDINALITY AS n(column_id, place)
    JOIN coret.catalog_column AS c USING (column_id)
    CROSS JOIN jsonb_array_elements(%(rows)s::jsonb) WITH ORDINALITY AS r(cells, position)
    WHERE coalesce(c.sample_level, 'samples') IN ('masked', 'samples')
    GROUP BY c.column_id
),
removed AS (
    DELETE FROM coret.column_sample AS s USING coret.catalog_column AS c
    WHERE c.table_id = %(table_id)s AND s.column_id = c.column_id AND s.column_id NOT IN (SELECT column_id FROM given)
),
stored AS (
    INSERT INTO coret.column_sample (column_id, sampled_values) SELECT column_id, sampled_values FROM given
    ON CONFLICT (column_id) DO UPDATE SET sampled_values = excluded.sampled_values
)
INSERT INTO coret.table_snapshot (table_id, row_count, content_hash, seed)
VALUES (%(table_id)s, jsonb_array_length(%(rows)s::jsonb), md5(%(rows)s::text), %(seed)s)
ON CONFLICT (table_id) DO UPDATE
SET row_count = excluded.row_count, content_hash = excluded.content_hash, seed = excluded.seed, taken_at = now()
