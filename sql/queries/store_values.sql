-- Store the values kept of one column, instead of those of another day.
WITH gone AS (
    DELETE FROM coret.column_value WHERE column_id = %(column_id)s AND value <> ALL (%(values)s::text[])
)
INSERT INTO coret.column_value (column_id, value)
SELECT %(column_id)s, value FROM unnest(%(values)s::text[]) AS value
ON CONFLICT DO NOTHING
