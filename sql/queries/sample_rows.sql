-- A few rows of one table, sampled without replacement and the same for the same seed. Run in the source.
-- {sample} narrows big tables by TABLESAMPLE; the order by a hash picks evenly among what is left.
SELECT {texts} FROM (SELECT * FROM {table} {sample} LIMIT 10000) AS sampled
ORDER BY hashtextextended(sampled::text, {seed}) LIMIT {rows}
