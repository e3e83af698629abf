-- Tables outside a set that are compatible with two or more of its anchors, those first whose names fit best.
WITH joined AS (
    SELECT CASE WHEN c.table_a = a.table_id THEN c.table_b ELSE c.table_a END AS table_id, c.header_similarity,
           row_number() OVER (PARTITION BY CASE WHEN c.table_a = a.table_id THEN c.table_b ELSE c.table_a END
                              ORDER BY c.header_similarity DESC) AS place
    FROM unnest(%(anchors)s::bigint[]) AS a(table_id)
    JOIN coret.compatibility AS c ON a.table_id IN (c.table_a, c.table_b)
    WHERE c.evidence <> 'rejected'
)
SELECT table_id FROM joined
WHERE place = 2 AND table_id <> ALL (%(known)s::bigint[])
ORDER BY header_similarity DESC, table_id LIMIT %(most)s
