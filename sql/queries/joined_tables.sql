-- Tables outside a set that joins of names that fit tie to two or more of its anchors, the surest first.
SELECT e.to_table
FROM (SELECT b.to_table, b.from_table, max(b.confidence) AS confidence
      FROM (SELECT parent_table AS to_table, child_table AS from_table, confidence, name_fit, evidence FROM coret.join_edge
            UNION ALL SELECT child_table, parent_table, confidence, name_fit, evidence FROM coret.join_edge) AS b
      WHERE b.from_table = ANY (%(anchors)s::bigint[]) AND b.to_table <> ALL (%(known)s::bigint[])
        -- As real: what the planner knows to leak nothing, it looks at before the rights.
        AND (b.name_fit >= %(least_fit)s::real OR b.evidence <> 'inferred')
      GROUP BY b.to_table, b.from_table) AS e
GROUP BY e.to_table HAVING count(*) >= 2
ORDER BY sum(e.confidence) DESC, e.to_table LIMIT %(most)s
