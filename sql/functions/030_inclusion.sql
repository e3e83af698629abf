-- Inclusion dependencies: which columns' distinct values are all among another column's.

CREATE OR REPLACE VIEW coret.keyed_column WITH (security_invoker) AS
    SELECT c.table_id, p.column_id, p.key_kind, p.distinct_count, p.is_unique, p.is_interval, p.min_key, p.max_key, p.sample_shift
    FROM coret.column_profile AS p JOIN coret.catalog_column AS c USING (column_id)
    WHERE p.key_kind IS NOT NULL AND p.distinct_count > 0;
COMMENT ON VIEW coret.keyed_column IS 'Profiled columns that have keys to be compared by.';

CREATE OR REPLACE FUNCTION coret.included_columns(sub_tables bigint[], sup_tables bigint[])
RETURNS TABLE (sub_column bigint, sup_column bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH sub AS MATERIALIZED (
        SELECT * FROM coret.keyed_column
        WHERE sample_shift = 0 AND (sub_tables IS NULL OR table_id IN (SELECT unnest(sub_tables)))
    ),
    -- A set can only be included where its greatest key is, an interval where both its ends are.
    end_key AS MATERIALIZED (
        SELECT e.key_kind, e.key, bool_or(e.is_unique) AS is_unique
        FROM (SELECT key_kind, max_key AS key, is_unique FROM sub
              UNION ALL SELECT key_kind, min_key, is_unique FROM sub WHERE is_interval) AS e
        GROUP BY e.key_kind, e.key
    ),
    sup AS MATERIALIZED (
        SELECT k.*, e.ends
        FROM coret.keyed_column AS k JOIN (SELECT key_kind, count(*) AS ends FROM end_key GROUP BY key_kind) AS e USING (key_kind)
        WHERE k.sample_shift = 0 AND NOT k.is_interval AND (sup_tables IS NULL OR k.table_id IN (SELECT unnest(sup_tables)))
          -- Keys are read only of columns that may hold another's, by what is known without them.
          AND EXISTS (SELECT FROM sub
                      WHERE sub.key_kind = k.key_kind AND sub.min_key >= k.min_key AND sub.max_key <= k.max_key
                        AND sub.table_id <> k.table_id AND (sub.is_unique OR k.is_unique) AND sub.distinct_count <= k.distinct_count)
    ),
    found AS (
        -- Of a column with few keys each is looked up among the ends.
        SELECT sup.column_id, e.key_kind, k.key, k.position
        FROM sup
        CROSS JOIN LATERAL (SELECT x.keys FROM coret.column_keys AS x WHERE x.column_id = sup.column_id OFFSET 0) AS s
        CROSS JOIN LATERAL unnest(s.keys) WITH ORDINALITY AS k(key, position)
        JOIN end_key AS e ON e.key = k.key
        WHERE sup.distinct_count <= 4 * sup.ends
        UNION ALL
        -- Among many keys each end is looked up, by binary search (width_bucket). The keys are fetched
        -- once: each mention of a stored array would fetch it anew, but not of the result of ||.
        SELECT sup.column_id, sup.key_kind, e.key, e.position
        FROM sup
        CROSS JOIN LATERAL (SELECT x.keys || '{}'::bigint[] AS keys
                            FROM coret.column_keys AS x WHERE x.column_id = sup.column_id OFFSET 0) AS s
        CROSS JOIN LATERAL (SELECT e.key, width_bucket(e.key, s.keys) AS position
                            FROM end_key AS e
                            WHERE e.key_kind = sup.key_kind AND (e.is_unique OR sup.is_unique)
                              AND e.key BETWEEN sup.min_key AND sup.max_key OFFSET 0) AS e
        WHERE sup.distinct_count > 4 * sup.ends AND s.keys[e.position] = e.key
    ),
    -- With what is known of the holder beside it: joined by key then, not kind by kind.
    hit AS MATERIALIZED (
        SELECT f.key, f.position, sup.* FROM found AS f JOIN sup ON sup.column_id = f.column_id AND sup.key_kind = f.key_kind
    ),
    -- Pairs that can pass: same kind of keys, different tables, one side unique, the smaller
    -- one's range inside the larger one's, and its greatest key there.
    plausible AS MATERIALIZED (
        SELECT sub.column_id AS sub_column, sub.distinct_count, sub.is_interval, sub.min_key, sub.max_key,
               h.column_id AS sup_column, h.position AS max_position
        FROM sub JOIN hit AS h ON h.key_kind = sub.key_kind AND h.key = sub.max_key
        WHERE sub.is_unique
          AND sub.table_id <> h.table_id AND sub.min_key >= h.min_key
          AND (sub.distinct_count < h.distinct_count OR sub.distinct_count = h.distinct_count AND sub.column_id < h.column_id)
        UNION ALL
        -- Apart, as very many columns of which neither is unique share their greatest key.
        SELECT sub.column_id, sub.distinct_count, sub.is_interval, sub.min_key, sub.max_key, h.column_id, h.position
        FROM sub JOIN hit AS h ON h.key_kind = sub.key_kind AND h.key = sub.max_key
        WHERE NOT sub.is_unique AND h.is_unique
          AND sub.table_id <> h.table_id AND sub.min_key >= h.min_key
          AND (sub.distinct_count < h.distinct_count OR sub.distinct_count = h.distinct_count AND sub.column_id < h.column_id)
    )
    -- An interval is there whole if its ends are, as far apart among the sorted keys as in value.
    SELECT p.sub_column, p.sup_column
    FROM plausible AS p JOIN hit AS low ON low.column_id = p.sup_column AND low.key = p.min_key
    WHERE p.is_interval AND p.max_position - low.position = p.max_key - p.min_key
    UNION ALL
    -- The rest by its values, a larger column at a time, whose keys are fetched once.
    SELECT u.column_id, g.sup_column
    FROM (SELECT p.sup_column, array_agg(p.sub_column) AS sub_columns, array_agg(p.distinct_count) AS counts
          FROM plausible AS p WHERE NOT p.is_interval GROUP BY p.sup_column) AS g
    CROSS JOIN LATERAL (SELECT x.keys || '{}'::bigint[] AS keys
                        FROM coret.column_keys AS x WHERE x.column_id = g.sup_column OFFSET 0) AS larger
    CROSS JOIN LATERAL unnest(g.sub_columns, g.counts) AS u(column_id, keys)
    CROSS JOIN LATERAL (SELECT x.keys, x.probes FROM coret.column_keys AS x WHERE x.column_id = u.column_id OFFSET 0) AS smaller
    -- A few probes settle most pairs that fail.
    WHERE NOT EXISTS (SELECT FROM (SELECT unnest(smaller.probes) AS key OFFSET 0) AS k
                      WHERE larger.keys[width_bucket(k.key, larger.keys)] IS DISTINCT FROM k.key)
      AND (u.keys = cardinality(smaller.probes)
           OR NOT EXISTS (SELECT FROM (SELECT unnest(smaller.keys) AS key OFFSET 0) AS k
                          WHERE larger.keys[width_bucket(k.key, larger.keys)] IS DISTINCT FROM k.key));
END;
COMMENT ON FUNCTION coret.included_columns(bigint[], bigint[]) IS
    'Column pairs between two sets of tables (NULL: all) where one side is unique and sub''s distinct values are included in sup''s, sup being no interval. Exact up to collisions of 64-bit hashes; integers and dates have none.';

CREATE OR REPLACE FUNCTION coret.compared_keys(of_column bigint)
RETURNS TABLE (key_kind text, sample_shift smallint, keys bigint[])
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT p.key_kind, p.sample_shift,
           -- Of an interval of many values no set is made: where it matters, its ends tell.
           CASE WHEN NOT p.is_interval THEN k.keys
                WHEN p.distinct_count <= 1000000 THEN array(SELECT generate_series(p.min_key, p.max_key)) END
    FROM coret.column_profile AS p LEFT JOIN coret.column_keys AS k USING (column_id)
    WHERE p.column_id = of_column;
END;
COMMENT ON FUNCTION coret.compared_keys(bigint) IS
    'The keys that are known of a column, also where it is an interval (of up to a million); of a sketch only the sampled ones.';

CREATE OR REPLACE FUNCTION coret.shared_keys(child bigint, parent bigint)
RETURNS TABLE (compared bigint, shared bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT count(*), count(*) FILTER (WHERE CASE WHEN p.is_interval THEN own.key BETWEEN p.min_key AND p.max_key
                                                 ELSE p.keys[width_bucket(own.key, p.keys)] = own.key END)
    FROM coret.compared_keys(child) AS c
    JOIN (SELECT f.key_kind, f.sample_shift, f.is_interval, f.min_key, f.max_key, k.keys || '{}'::bigint[] AS keys
          FROM coret.column_profile AS f LEFT JOIN coret.column_keys AS k USING (column_id)
          WHERE f.column_id = parent OFFSET 0) AS p ON p.key_kind = c.key_kind
    CROSS JOIN LATERAL unnest(c.keys) AS own(key)
    -- Of two sketches only what both would hold can be compared.
    WHERE c.sample_shift = 0 AND p.sample_shift = 0
       OR hashint8extended(own.key, 0) & ((1::bigint << greatest(c.sample_shift, p.sample_shift)) - 1) = 0;
END;
COMMENT ON FUNCTION coret.shared_keys(bigint, bigint) IS
    'How many of the child column''s keys can be compared with the parent''s, and how many of these the parent has.';

CREATE OR REPLACE FUNCTION coret.included_sketches(sub_tables bigint[], sup_tables bigint[])
RETURNS TABLE (sub_column bigint, sup_column bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH sub AS MATERIALIZED (
        SELECT * FROM coret.keyed_column WHERE sub_tables IS NULL OR table_id IN (SELECT unnest(sub_tables))
    ),
    sup AS MATERIALIZED (
        SELECT * FROM coret.keyed_column
        WHERE NOT is_interval AND (sup_tables IS NULL OR table_id IN (SELECT unnest(sup_tables)))
    ),
    -- Sketches are few: first whatever is known by one, then what is compared with one.
    pair AS (
        SELECT sub.column_id AS sub_column, sup.column_id AS sup_column FROM sub JOIN sup USING (key_kind) WHERE sub.sample_shift > 0
        UNION ALL
        SELECT sub.column_id, sup.column_id FROM sup JOIN sub USING (key_kind) WHERE sup.sample_shift > 0 AND sub.sample_shift = 0
    ),
    plausible AS MATERIALIZED (
        SELECT sub.column_id AS sub_column, sup.column_id AS sup_column, sub.is_interval, sub.min_key, sub.max_key,
               (1::bigint << greatest(sub.sample_shift, sup.sample_shift)) - 1 AS mask
        FROM pair JOIN sub ON sub.column_id = pair.sub_column JOIN sup ON sup.column_id = pair.sup_column
        WHERE sub.table_id <> sup.table_id AND (sub.is_unique OR sup.is_unique)
          -- Where a count is estimated the included set may come out as the larger one.
          AND CASE WHEN (sub.sample_shift = 0 OR sub.is_unique) AND (sup.sample_shift = 0 OR sup.is_unique)
                   THEN (sub.distinct_count, sub.column_id) < (sup.distinct_count, sup.column_id)
                   ELSE sub.distinct_count <= 1.1 * sup.distinct_count
                        AND (sub.distinct_count <> sup.distinct_count OR sub.column_id < sup.column_id) END
          AND sub.min_key >= sup.min_key AND sub.max_key <= sup.max_key
    )
    SELECT u.sub_column, g.sup_column
    FROM (SELECT p.sup_column, array_agg(p.sub_column) AS sub_columns, array_agg(p.mask) AS masks, array_agg(p.is_interval) AS intervals,
                 array_agg(p.min_key) AS min_keys, array_agg(p.max_key) AS max_keys
          FROM plausible AS p GROUP BY p.sup_column) AS g
    CROSS JOIN LATERAL (SELECT x.keys || '{}'::bigint[] AS keys
                        FROM coret.column_keys AS x WHERE x.column_id = g.sup_column OFFSET 0) AS larger
    CROSS JOIN LATERAL unnest(g.sub_columns, g.masks, g.intervals, g.min_keys, g.max_keys) AS u(sub_column, mask, is_interval, min_key, max_key)
    -- An interval keeps none.
    LEFT JOIN LATERAL (SELECT x.keys FROM coret.column_keys AS x WHERE x.column_id = u.sub_column OFFSET 0) AS k ON true
    -- Three keys settle most pairs that fail; with fewer to compare nothing is proved.
    WHERE 3 = (SELECT count(*)
               FROM (SELECT s.key FROM (SELECT unnest(k.keys) AS key
                                        UNION ALL SELECT generate_series(u.min_key, u.max_key) WHERE u.is_interval) AS s
                     WHERE hashint8extended(s.key, 0) & u.mask = 0 LIMIT 3) AS first_key
               WHERE larger.keys[width_bucket(first_key.key, larger.keys)] = first_key.key)
      AND NOT EXISTS (SELECT FROM (SELECT unnest(k.keys) AS key
                                   UNION ALL SELECT generate_series(u.min_key, u.max_key) WHERE u.is_interval) AS s
                      WHERE hashint8extended(s.key, 0) & u.mask = 0
                        AND larger.keys[width_bucket(s.key, larger.keys)] IS DISTINCT FROM s.key);
END;
COMMENT ON FUNCTION coret.included_sketches(bigint[], bigint[]) IS
    'What coret.included_columns returns, for pairs of which a side is known by a sketch only: all keys that both sketches would hold, three at least, are found.';

CREATE OR REPLACE FUNCTION coret.refresh_inclusions(changed_tables bigint[], due_tables bigint[]) RETURNS bigint
LANGUAGE sql VOLATILE STRICT
-- Estimates of what arrays hold are too rough to sort by, or to go through row by row.
SET enable_mergejoin = off
SET enable_nestloop = off
-- Keys of columns that are fetched once needn't be kept.
SET enable_memoize = off
BEGIN ATOMIC
    -- What the changed tables' columns hold of others, and what of theirs other tables hold that are
    -- not due themselves: those that are have been asked, or will be, as changed tables in their turn.
    DELETE FROM coret.inclusion AS i USING coret.catalog_column AS c
    WHERE c.column_id = i.sup_column AND c.table_id IN (SELECT unnest(changed_tables));
    DELETE FROM coret.inclusion AS i USING coret.catalog_column AS sub, coret.catalog_column AS sup
    WHERE sub.column_id = i.sub_column AND sub.table_id IN (SELECT unnest(changed_tables))
      AND sup.column_id = i.sup_column AND sup.table_id NOT IN (SELECT unnest(due_tables));
    WITH stored AS (
        INSERT INTO coret.inclusion (sub_column, sup_column)
        SELECT i.sub_column, i.sup_column FROM coret.included_columns(NULL, changed_tables) AS i
        UNION ALL
        SELECT i.sub_column, i.sup_column FROM coret.included_sketches(NULL, changed_tables) AS i
        UNION ALL
        SELECT i.sub_column, i.sup_column
        FROM coret.included_columns(changed_tables,
                 array(SELECT t.table_id FROM coret.catalog_table AS t EXCEPT SELECT unnest(due_tables))) AS i
        UNION ALL
        SELECT i.sub_column, i.sup_column
        FROM coret.included_sketches(changed_tables,
                 array(SELECT t.table_id FROM coret.catalog_table AS t EXCEPT SELECT unnest(due_tables))) AS i
        RETURNING 1
    )
    SELECT count(*) FROM stored;
END;
COMMENT ON FUNCTION coret.refresh_inclusions(bigint[], bigint[]) IS
    'Renew coret.inclusion for some changed tables; due_tables holds every table that is renewed in the same run, these included. Returns the number of pairs stored.';
