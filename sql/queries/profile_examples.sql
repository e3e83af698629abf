-- Some values of one column as texts, from the first rows that have any. {column}, {value}, {shown}: as in profile_facts.sql. Run in the source.
SELECT array(SELECT left({shown}, 100) FROM (SELECT {value} AS value FROM {table} WHERE {column} IS NOT NULL LIMIT 50) AS first)
