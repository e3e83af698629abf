-- The tables that hold each of some phrases as a value, or as the first words of one (two words or more).
SELECT p.phrase, array_agg(DISTINCT c.table_id)
FROM unnest(%(phrases)s::text[]) AS p(phrase)
JOIN coret.column_phrases AS f ON f.phrases @> ARRAY[p.phrase COLLATE "C"]
JOIN coret.catalog_column AS c USING (column_id)
GROUP BY p.phrase
