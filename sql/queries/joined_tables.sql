-- Tables outside a set that joins of names that fit tie to two or more of its anchors, the surest first.
SELECT e.to_table
FROM (SELECT e.to_table, e.from_table, max(e.confidence) AS confidence
      FROM coret.join_edge AS j JOIN coret.join_edge_both AS e USING (edge_id)
      WHERE e.from_table = ANY (%(anchors)s::bigint[]) AND e.to_table <> ALL (%(known)s::bigint[])
        AND (j.name_fit >= %(least_fit)s OR j.evidence <> 'inferred')
      GROUP BY e.to_table, e.from_table) AS e
GROUP BY e.to_table HAVING count(*) >= 2
ORDER BY sum(e.confidence) DESC, e.to_table LIMIT %(most)s
