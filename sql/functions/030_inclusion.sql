-- Inclusion dependencies: which columns' distinct values are all among another column's.

CREATE OR REPLACE VIEW coret.keyed_column AS
    SELECT c.table_id, p.column_id, p.key_kind, p.distinct_count, p.is_unique, p.is_interval, p.min_key, p.max_key
    FROM coret.column_profile AS p JOIN coret.catalog_column AS c USING (column_id)
    WHERE p.key_kind IS NOT NULL AND p.distinct_count > 0;
COMMENT ON VIEW coret.keyed_column IS 'Profiled columns that have keys to be compared by.';

CREATE OR REPLACE FUNCTION coret.included_columns(sub_tables bigint[], sup_tables bigint[])
RETURNS TABLE (sub_column bigint, sup_column bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH sub AS MATERIALIZED (
        SELECT * FROM coret.keyed_column WHERE sub_tables IS NULL OR table_id = ANY (sub_tables)
    ),
    sup AS MATERIALIZED (
        SELECT * FROM coret.keyed_column WHERE NOT is_interval AND (sup_tables IS NULL OR table_id = ANY (sup_tables))
    ),
    -- A set can only be included where its greatest key is, an interval where both its ends are.
    end_key AS MATERIALIZED (
        SELECT key_kind, max_key AS key FROM sub UNION SELECT key_kind, min_key FROM sub WHERE is_interval
    ),
    hit AS MATERIALIZED (
        -- Of many: all keys are read once and each is looked up among the ends.
        SELECT s.column_id, k.key, k.position
        FROM sup JOIN coret.column_keys AS s ON s.column_id = sup.column_id
        CROSS JOIN LATERAL unnest(s.keys) WITH ORDINALITY AS k(key, position)
        JOIN (SELECT DISTINCT key FROM end_key) AS e ON e.key = k.key
        WHERE (SELECT count(*) FROM end_key) > 100
        UNION ALL
        -- Of few: each end is looked up among a column's keys by binary search (width_bucket).
        SELECT sup.column_id, e.key, width_bucket(e.key, s.keys)
        FROM sup
        CROSS JOIN LATERAL (SELECT x.keys || '{}'::bigint[] AS keys
                            FROM coret.column_keys AS x WHERE x.column_id = sup.column_id OFFSET 0) AS s
        JOIN end_key AS e ON e.key_kind = sup.key_kind AND e.key BETWEEN sup.min_key AND sup.max_key
        WHERE (SELECT count(*) FROM end_key) <= 100 AND s.keys[width_bucket(e.key, s.keys)] = e.key
    ),
    -- Pairs that can pass: same kind of keys, different tables, one side unique, the smaller
    -- one's range inside the larger one's, and its greatest key there.
    plausible AS MATERIALIZED (
        SELECT sub.column_id AS sub_column, sub.is_interval AS sub_is_interval, sub.min_key, sub.max_key,
               sup.column_id AS sup_column, high.position AS max_position
        FROM hit AS high
        JOIN sup ON sup.column_id = high.column_id
        JOIN sub ON sub.key_kind = sup.key_kind AND sub.max_key = high.key
        WHERE sub.table_id <> sup.table_id
          AND (sub.is_unique OR sup.is_unique)
          AND (sub.distinct_count, sub.column_id) < (sup.distinct_count, sup.column_id)
          AND sub.min_key >= sup.min_key
    )
    -- An interval is there whole if its ends are, as far apart among the sorted keys as in value.
    SELECT p.sub_column, p.sup_column
    FROM plausible AS p JOIN hit AS low ON low.column_id = p.sup_column AND low.key = p.min_key
    WHERE p.sub_is_interval AND p.max_position - low.position = p.max_key - p.min_key
    UNION ALL
    -- The rest by its values, a larger column at a time, whose keys are fetched once: each
    -- mention of a stored array would fetch it anew, but not of the result of ||.
    SELECT u.column_id, g.sup_column
    FROM (SELECT p.sup_column, array_agg(p.sub_column) AS sub_columns
          FROM plausible AS p WHERE NOT p.sub_is_interval GROUP BY p.sup_column) AS g
    CROSS JOIN LATERAL (SELECT x.keys || '{}'::bigint[] AS keys
                        FROM coret.column_keys AS x WHERE x.column_id = g.sup_column OFFSET 0) AS larger
    CROSS JOIN LATERAL unnest(g.sub_columns) AS u(column_id)
    CROSS JOIN LATERAL (SELECT x.probes, x.keys || '{}'::bigint[] AS keys
                        FROM coret.column_keys AS x WHERE x.column_id = u.column_id OFFSET 0) AS smaller
    WHERE CASE
        -- Comparing everything with everything is quickest for small sets.
        WHEN cardinality(smaller.keys)::bigint * cardinality(larger.keys) <= 20000 THEN smaller.keys <@ larger.keys
        -- A few probes settle most pairs that fail.
        WHEN EXISTS (SELECT FROM unnest(smaller.probes) AS probe
                     WHERE larger.keys[width_bucket(probe, larger.keys)] IS DISTINCT FROM probe) THEN false
        ELSE NOT EXISTS (SELECT unnest(smaller.keys) EXCEPT SELECT unnest(larger.keys))
    END;
END;
COMMENT ON FUNCTION coret.included_columns(bigint[], bigint[]) IS
    'Column pairs between two sets of tables (NULL: all) where one side is unique and sub''s distinct values are included in sup''s, sup being no interval. Exact up to collisions of 64-bit hashes; integers and dates have none.';

CREATE OR REPLACE FUNCTION coret.refresh_inclusions(changed_tables bigint[], due_tables bigint[]) RETURNS bigint
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    -- What the changed tables' columns hold of others, and what of theirs other tables hold that
    -- are not due themselves: those that are will be asked as changed tables in their turn.
    DELETE FROM coret.inclusion AS i USING coret.catalog_column AS c
    WHERE c.column_id = i.sup_column AND c.table_id = ANY (changed_tables);
    DELETE FROM coret.inclusion AS i USING coret.catalog_column AS sub, coret.catalog_column AS sup
    WHERE sub.column_id = i.sub_column AND sub.table_id = ANY (changed_tables)
      AND sup.column_id = i.sup_column AND sup.table_id <> ALL (due_tables);
    WITH stored AS (
        INSERT INTO coret.inclusion (sub_column, sup_column)
        SELECT i.sub_column, i.sup_column FROM coret.included_columns(NULL, changed_tables) AS i
        UNION ALL
        SELECT i.sub_column, i.sup_column
        FROM coret.included_columns(changed_tables,
                 array(SELECT t.table_id FROM coret.catalog_table AS t WHERE t.table_id <> ALL (due_tables))) AS i
        RETURNING 1
    )
    SELECT count(*) FROM stored;
END;
COMMENT ON FUNCTION coret.refresh_inclusions(bigint[], bigint[]) IS
    'Renew coret.inclusion for some changed tables; due_tables holds these and every other table that is still to be renewed. Returns the number of pairs stored.';
