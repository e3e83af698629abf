-- Facts about one column whose values hardly repeat, in one scan: sorting the keys takes less than a hash table of the values.
-- {column}, {value}, {shown_least}, {shown_greatest}, {kept_keys}: as in profile_facts.sql; {key}: the key of the column's
-- value; {examples}: some values, or NULL. Run in the source.
SELECT f.row_count, f.null_count, coalesce(cardinality(f.keys), 0)::bigint AS distinct_count, left({shown_least}, 200) AS min_value,
       left({shown_greatest}, 200) AS max_value, NULL::text[] AS repeated_values, {kept_keys} AS keys, NULL::text[] AS few_values,
       f.examples, f.keys[1] AS min_key, f.keys[cardinality(f.keys)] AS max_key
FROM (
    SELECT count(*) AS row_count, count(*) - count({column}) AS null_count, min({value}) AS least, max({value}) AS greatest,
           array_agg(DISTINCT {key} ORDER BY {key}) FILTER (WHERE {column} IS NOT NULL) AS keys, {examples} AS examples
    FROM {table}
) AS f
