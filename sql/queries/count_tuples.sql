-- How a table's distinct tuples of some columns lie in another's. {child_values}, {parent_values}: the columns as they
-- compare, named k1, k2 ...; {keys}: these names. Run in the source; reads only.
WITH child AS MATERIALIZED (
    SELECT {keys}, count(*) AS occurrences FROM (SELECT {child_values} FROM {child}) AS scanned
    WHERE num_nulls({keys}) = 0 GROUP BY {keys}
),
parent AS MATERIALIZED (
    SELECT {keys}, count(*) AS occurrences FROM (SELECT {parent_values} FROM {parent}) AS scanned
    WHERE num_nulls({keys}) = 0 GROUP BY {keys}
)
SELECT (SELECT count(*) FROM child) AS child_tuples,
       (SELECT count(*) FROM child JOIN parent USING ({keys})) AS shared_tuples,
       (SELECT coalesce(bool_and(occurrences = 1), false) FROM child) AS child_is_unique,
       (SELECT coalesce(bool_and(occurrences = 1), false) FROM parent) AS parent_is_unique
