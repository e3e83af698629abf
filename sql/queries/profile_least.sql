-- The least values of one column, as texts, some of them twice. {value}: the column as it compares. Run in the source.
SELECT array(SELECT left(value::text, 100) FROM (SELECT {value} AS value FROM {table}) AS scanned
             WHERE value IS NOT NULL ORDER BY value LIMIT {most})
