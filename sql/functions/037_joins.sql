-- Joins worth believing: evidence from names and values, weighed against every other candidate.

CREATE OR REPLACE FUNCTION coret.included_share(child bigint, parent bigint) RETURNS real
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT s.shared::float8 / nullif(s.compared, 0) FROM coret.shared_keys(child, parent) AS s;
END;
COMMENT ON FUNCTION coret.included_share(bigint, bigint) IS
    'Share of the child column''s distinct keys that the parent column has, 0 to 1; NULL where there is nothing to compare.';

CREATE OR REPLACE VIEW coret.join_evidence WITH (security_invoker) AS
    SELECT e.edge_id, e.child_table, e.parent_table, e.child_columns, e.parent_columns, e.evidence, e.name_fit, e.included,
           e.included IS NULL AS is_unseen,
           coalesce(least(1, e.included * pc.distinct_count / nullif(pp.distinct_count, 0)), 0)::real AS covered,
           (cc.column_name = upper(cc.column_name)) = (cp.column_name = upper(cp.column_name))
               AND (cc.column_name = lower(cc.column_name)) = (cp.column_name = lower(cp.column_name))
               AND (cc.column_name LIKE '%\_%') = (cp.column_name LIKE '%\_%')
               AND (left(cc.column_name, 1) = upper(left(cc.column_name, 1))) = (left(cp.column_name, 1) = upper(left(cp.column_name, 1))) AS same_style,
           cc.column_name = cp.column_name AS same_name,
           coalesce(pc.is_interval AND pc.key_kind = pp.key_kind AND pc.min_key = pp.min_key, false) AS is_prefix,
           coalesce(pc.key_kind = pp.key_kind AND pc.max_key = pp.max_key AND pc.distinct_count > 0, false) AS same_end,
           coalesce(pc.is_unique, false) AND NOT EXISTS (
               SELECT FROM coret.catalog_column AS x WHERE x.table_id = cc.table_id AND x.attnum < cc.attnum) AS child_is_key,
           lower(t.table_name) AS child_name
    FROM coret.join_edge AS e
    JOIN coret.catalog_table AS t ON t.table_id = e.child_table
    -- Of a composite key the first column stands for all.
    JOIN coret.catalog_column AS cc ON cc.column_id = e.child_columns[1]
    JOIN coret.catalog_column AS cp ON cp.column_id = e.parent_columns[1]
    LEFT JOIN coret.column_profile AS pc ON pc.column_id = cc.column_id
    LEFT JOIN coret.column_profile AS pp ON pp.column_id = cp.column_id;
COMMENT ON VIEW coret.join_evidence IS 'What speaks for and against each possible join, from its two columns alone.';

CREATE OR REPLACE VIEW coret.join_weight WITH (security_invoker) AS
    WITH prior AS (
        SELECT *, CASE WHEN evidence = 'inferred'
                  THEN name_fit + 0.6 * covered + 0.2 * same_name::int + 0.1 * same_style::int + 0.2 * (included = 1)::int
                  ELSE 10 END::numeric(8, 4) AS strength
        FROM coret.join_evidence
    ),
    compared AS (
        SELECT *,
               count(*) OVER (PARTITION BY child_columns ORDER BY strength RANGE BETWEEN 0.02 PRECEDING AND 0.02 FOLLOWING) - 1 AS equals,
               count(*) OVER (PARTITION BY child_columns ORDER BY strength DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 0.02 PRECEDING) AS betters,
               count(*) OVER (PARTITION BY parent_columns, child_name)
               - count(*) OVER (PARTITION BY parent_columns, child_table) AS rivals,
               bool_or(evidence <> 'inferred') OVER (PARTITION BY child_columns) AS is_decided
        FROM prior
    )
    SELECT edge_id, equals::integer, betters::integer, rivals::integer,
           CASE WHEN evidence <> 'inferred' THEN 1::real
                ELSE (1 / (1 + exp(-(
                    -1.3
                    -- The steps of coret_pg/join_names.py; 0.6: both columns point to a third table.
                    + CASE WHEN name_fit = 1 THEN 2.0 WHEN name_fit >= 0.8 THEN 1.0 WHEN name_fit = 0.6::real THEN -2.0 ELSE 0 END
                    + CASE WHEN is_unseen THEN -1.7
                           ELSE 0.55 * ln(greatest(covered, 0.001)) - 0.7 * is_prefix::int + 0.4 * same_end::int END
                    + 1.1 * same_style::int
                    - 2.1 * child_is_key::int
                    - 1.6 * ln(1 + least(equals, 30))
                    - 2.5 * ln(1 + least(betters, 30))
                    - 0.5 * ln(1 + rivals)
                    -- A child that is known to point elsewhere hardly points here too.
                    - 3.0 * is_decided::int))))::real END AS confidence
    FROM compared;
COMMENT ON VIEW coret.join_weight IS
    'The confidence of each possible join: log-odds of its evidence, how many other parents fit its child column as well (equals) or better (betters), and how many tables of the same name fit the same parent (rivals). The weights are set on the keys that Spider''s training databases declare (docs/explanation/join-discovery.md).';

CREATE OR REPLACE FUNCTION coret.weigh_joins() RETURNS bigint
LANGUAGE sql VOLATILE
BEGIN ATOMIC
    WITH weighed AS (
        UPDATE coret.join_edge AS e SET confidence = w.confidence, equals = w.equals, betters = w.betters, rivals = w.rivals
        FROM coret.join_weight AS w
        WHERE w.edge_id = e.edge_id
          AND (e.confidence, e.equals, e.betters, e.rivals) IS DISTINCT FROM (w.confidence, w.equals, w.betters, w.rivals)
        RETURNING 1
    )
    SELECT count(*) FROM weighed;
END;
COMMENT ON FUNCTION coret.weigh_joins() IS
    'Set the confidence of every possible join anew, each compared with the others; returns how many changed.';

CREATE OR REPLACE FUNCTION coret.renew_certain_joins(changed_tables bigint[]) RETURNS void
LANGUAGE sql VOLATILE
BEGIN ATOMIC
    -- Keys that the source declares.
    INSERT INTO coret.join_edge (child_table, parent_table, child_columns, parent_columns, evidence, name_fit, included, cardinality)
    SELECT k.table_id, p.table_id, c.child_columns, c.parent_columns, 'declared', 1, 1,
           CASE WHEN EXISTS (SELECT FROM coret.declared_key AS u WHERE u.table_id = k.table_id AND u.kind <> 'foreign' AND u.attnums <@ k.attnums)
                     OR cardinality(c.child_columns) = 1 AND EXISTS (
                         SELECT FROM coret.column_profile AS f WHERE f.column_id = c.child_columns[1] AND f.is_unique)
                THEN '1:1' ELSE 'N:1' END
    FROM coret.declared_key AS k
    JOIN coret.catalog_table AS t ON t.table_id = k.table_id
    JOIN coret.catalog_table AS p ON p.source_id = t.source_id AND p.table_oid = k.parent_oid AND p.table_id <> k.table_id
    CROSS JOIN LATERAL (
        SELECT array_agg(cc.column_id ORDER BY cc.column_id) AS child_columns, array_agg(cp.column_id ORDER BY cc.column_id) AS parent_columns
        FROM unnest(k.attnums, k.parent_attnums) AS n(child_attnum, parent_attnum)
        JOIN coret.catalog_column AS cc ON cc.table_id = k.table_id AND cc.attnum = n.child_attnum
        JOIN coret.catalog_column AS cp ON cp.table_id = p.table_id AND cp.attnum = n.parent_attnum) AS c
    WHERE k.kind = 'foreign' AND cardinality(c.child_columns) = cardinality(k.attnums)
      AND (k.table_id = ANY (changed_tables) OR p.table_id = ANY (changed_tables))
    ON CONFLICT (child_columns, parent_columns) DO UPDATE SET evidence = 'declared';
    -- What people accepted: the side that is unique is the parent.
    INSERT INTO coret.join_edge (child_table, parent_table, child_columns, parent_columns, evidence, name_fit, included, cardinality)
    SELECT o.child_table, o.parent_table, o.child_columns, o.parent_columns, 'confirmed', 1,
           CASE WHEN cardinality(o.child_columns) = 1 THEN coret.included_share(o.child_columns[1], o.parent_columns[1]) END,
           CASE WHEN NOT o.parent_unique THEN 'N:M' WHEN o.child_unique THEN '1:1' ELSE 'N:1' END
    FROM coret.directed_verdict AS o
    WHERE o.verdict = 'accepted' AND (o.child_table = ANY (changed_tables) OR o.parent_table = ANY (changed_tables))
      AND NOT EXISTS (SELECT FROM coret.join_edge AS e WHERE e.child_columns = o.turned_child_columns AND e.parent_columns = o.turned_parent_columns)
    ON CONFLICT (child_columns, parent_columns) DO UPDATE SET evidence = 'confirmed';
    UPDATE coret.join_edge AS e SET evidence = 'confirmed'
    FROM coret.directed_verdict AS o
    WHERE o.verdict = 'accepted' AND e.child_columns = o.turned_child_columns AND e.parent_columns = o.turned_parent_columns
      AND e.evidence <> 'confirmed';
    -- What people rejected, whatever says it.
    DELETE FROM coret.join_edge AS e USING coret.directed_verdict AS o
    WHERE o.verdict = 'rejected'
      AND (e.child_columns, e.parent_columns) IN ((o.child_columns, o.parent_columns), (o.turned_child_columns, o.turned_parent_columns));
END;
COMMENT ON FUNCTION coret.renew_certain_joins(bigint[]) IS
    'Add the joins of some tables that keys declare or people accepted, and remove those that people rejected.';
