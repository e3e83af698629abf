-- The tables that hold each of some phrases as a value, or as the first words of one (two words or more).
WITH phrase AS (SELECT p.phrase COLLATE "C" AS phrase FROM unnest(%(phrases)s::text[]) AS p(phrase)),
found AS (
    SELECT p.phrase, v.column_id FROM phrase AS p JOIN coret.column_value AS v ON v.value = p.phrase
    UNION
    -- Values are words with one blank between; the character after the blank ends the range.
    SELECT p.phrase, v.column_id
    FROM phrase AS p JOIN coret.column_value AS v ON v.value > p.phrase || ' ' AND v.value < p.phrase || '!'
    WHERE p.phrase LIKE '%% %%'
)
SELECT f.phrase, array_agg(DISTINCT c.table_id)
FROM found AS f JOIN coret.catalog_column AS c USING (column_id)
GROUP BY f.phrase
