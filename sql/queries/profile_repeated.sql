-- The values of one column that repeat, as texts, most frequent first. {value}, {shown}: as in profile_facts.sql. Run in the source.
SELECT array(SELECT left({shown}, 100)
             FROM (SELECT value, count(*) AS occurrences FROM (SELECT {value} AS value FROM {table}) AS scanned GROUP BY value) AS grouped
             WHERE occurrences > 1 AND value IS NOT NULL ORDER BY occurrences DESC, value LIMIT 5)
