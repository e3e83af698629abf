-- Facts about one column in one scan, grouped by its values. {value}: the column as it compares; {shown}: `value` as text, {shown_least}
-- and {shown_greatest}: likewise; {keys}: the sorted keys of all values, {values}: the short ones, or NULL where they may not
-- be needed; {kept_keys}: which of the keys to hand back; {min_key}, {max_key}: the keys of the extremes. Run in the source.
SELECT f.row_count, f.null_count, f.distinct_count, left({shown_least}, 200) AS min_value, left({shown_greatest}, 200) AS max_value,
       coalesce(f.repeated, ARRAY[]::text[]) AS repeated_values, {kept_keys} AS keys, f.few_values, NULL::text[] AS examples,
       {min_key} AS min_key, {max_key} AS max_key
FROM (
    SELECT coalesce(sum(occurrences), 0)::bigint AS row_count,
           coalesce(sum(occurrences) FILTER (WHERE value IS NULL), 0)::bigint AS null_count,
           count(value) AS distinct_count, min(value) AS least, max(value) AS greatest,
           -- Most columns repeat few values or have few: sorting all would cost more than all the rest.
           (array_agg(left({shown}, 100) ORDER BY occurrences DESC, value) FILTER (WHERE occurrences > 1 AND value IS NOT NULL))[1:5] AS repeated,
           {keys} AS keys, {values} AS few_values
    FROM (SELECT value, count(*) AS occurrences FROM (SELECT {value} AS value FROM {table}) AS scanned GROUP BY value) AS grouped
) AS f
