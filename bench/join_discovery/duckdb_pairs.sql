-- Pairs of which the smaller column shares all its values with the larger.
WITH valued AS MATERIALIZED (
    SELECT * FROM cell JOIN facts USING (number)
)
SELECT a.number, b.number
FROM valued AS a JOIN valued AS b ON b.type = a.type AND b.value = a.value
WHERE a."table" <> b."table" AND (a.is_unique OR b.is_unique)
  AND (a.distinct_count < b.distinct_count OR (a.distinct_count = b.distinct_count AND a.number < b.number))
GROUP BY a.number, b.number, a.distinct_count
HAVING count(*) = a.distinct_count
