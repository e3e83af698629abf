-- All distinct values of a text column up to a length. {value}: the column as it compares. Run in the source.
SELECT array(SELECT DISTINCT value FROM (SELECT {value} AS value FROM {table}) AS scanned WHERE length(value) <= {longest})
