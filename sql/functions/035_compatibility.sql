-- Compatibility of tables: the gate over column pairs, the score, the best pair a table pair.

CREATE OR REPLACE VIEW coret.gate_column WITH (security_invoker) AS
    SELECT c.table_id, p.column_id, p.distinct_count, p.min_key, p.max_key, p.is_interval,
           p.is_unique AND (s.gate = 'families' OR p.null_count = 0) AS is_unique, p.sample_shift > 0 AS is_sampled,
           -- What two columns have to be alike in to be compared at all.
           CASE s.gate WHEN 'strict' THEN p.key_kind || ' ' || c.type_name ELSE p.key_kind END AS compared_as,
           c.header_hashes
    FROM coret.column_profile AS p
    JOIN coret.catalog_column AS c USING (column_id)
    CROSS JOIN coret.compatibility_setting AS s
    WHERE p.key_kind IS NOT NULL AND p.distinct_count > 0;
COMMENT ON VIEW coret.gate_column IS 'Columns that can pass the gate, as coret.compatibility_setting has it.';

CREATE OR REPLACE FUNCTION coret.header_similarity(cosine_distance float8, word_overlap real) RETURNS real
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (0.5 * greatest(0, least(1, 1 - coalesce(cosine_distance, 1))) + 0.5 * word_overlap)::real;
COMMENT ON FUNCTION coret.header_similarity(float8, real) IS
    '0.5 * cosine of two header embeddings (clamped to 0..1; 0 where one is missing) + 0.5 * overlap coefficient of the header words.';

CREATE OR REPLACE FUNCTION coret.scored_pairs(own_tables bigint[], other_tables bigint[] DEFAULT NULL, least_score real DEFAULT 0, only_columns bigint[] DEFAULT NULL)
RETURNS TABLE (sub_table bigint, sup_table bigint, sub_column bigint, sup_column bigint, score real, jaccard real, header_similarity real,
               sub_is_unique boolean, sup_is_unique boolean, is_sampled boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH side AS MATERIALIZED (
        -- With their vectors: to look these up pair by pair would take most of the time.
        SELECT g.*, e.embedding, asked.is_own, asked.is_other
        FROM (SELECT t.table_id, bool_or(t.is_own) AS is_own, NOT bool_and(t.is_own) AS is_other
              FROM (SELECT unnest(own_tables) AS table_id, true AS is_own UNION ALL SELECT unnest(coalesce(other_tables, own_tables)), false) AS t
              GROUP BY t.table_id) AS asked
        JOIN coret.gate_column AS g USING (table_id)
        LEFT JOIN coret.column_embedding AS e
            ON e.model_id = (SELECT m.model_id FROM coret.embedding_model AS m WHERE m.is_active) AND e.column_id = g.column_id
        WHERE only_columns IS NULL OR g.column_id = ANY (only_columns)
    ),
    included AS MATERIALIZED (
        -- LATERAL and OFFSET 0: by index, also where the planner takes the columns for more than they are.
        SELECT i.sub_column, i.sup_column
        FROM side AS s CROSS JOIN LATERAL (SELECT * FROM coret.inclusion AS x WHERE x.sub_column = s.column_id OFFSET 0) AS i
        WHERE s.is_own
        UNION
        SELECT i.sub_column, i.sup_column
        FROM side AS s CROSS JOIN LATERAL (SELECT * FROM coret.inclusion AS x WHERE x.sup_column = s.column_id OFFSET 0) AS i
        WHERE s.is_own
    ),
    passing AS (
        -- In an interval the range alone tells: such pairs are never stored.
        SELECT sub.table_id AS sub_table, sup.table_id AS sup_table, sub.column_id AS sub_column, sup.column_id AS sup_column,
               sub.distinct_count AS sub_count, sup.distinct_count AS sup_count, sub.is_unique AS sub_is_unique, sup.is_unique AS sup_is_unique,
               sub.is_sampled OR sup.is_sampled AS is_sampled, sub.header_hashes AS sub_hashes, sup.header_hashes AS sup_hashes,
               sub.embedding AS sub_embedding, sup.embedding AS sup_embedding
        FROM side AS sub JOIN side AS sup ON sup.compared_as = sub.compared_as
        WHERE sub.is_own AND sup.is_other
          AND sup.is_interval AND sub.min_key >= sup.min_key AND sub.max_key <= sup.max_key
          AND sub.table_id <> sup.table_id AND (sub.is_unique OR sup.is_unique)
          AND (sub.distinct_count < sup.distinct_count OR sub.distinct_count = sup.distinct_count AND sub.column_id < sup.column_id)
        UNION ALL
        -- The same seen from the other side, where that is another.
        SELECT sub.table_id, sup.table_id, sub.column_id, sup.column_id, sub.distinct_count, sup.distinct_count, sub.is_unique, sup.is_unique,
               sub.is_sampled OR sup.is_sampled, sub.header_hashes, sup.header_hashes, sub.embedding, sup.embedding
        FROM side AS sub JOIN side AS sup ON sup.compared_as = sub.compared_as
        WHERE sub.is_other AND sup.is_own AND NOT (sub.is_own AND sup.is_other)
          AND sup.is_interval AND sub.min_key >= sup.min_key AND sub.max_key <= sup.max_key
          AND sub.table_id <> sup.table_id AND (sub.is_unique OR sup.is_unique)
          AND (sub.distinct_count < sup.distinct_count OR sub.distinct_count = sup.distinct_count AND sub.column_id < sup.column_id)
        UNION ALL
        SELECT sub.table_id, sup.table_id, sub.column_id, sup.column_id, sub.distinct_count, sup.distinct_count, sub.is_unique, sup.is_unique,
               sub.is_sampled OR sup.is_sampled, sub.header_hashes, sup.header_hashes, sub.embedding, sup.embedding
        FROM included AS i
        JOIN side AS sub ON sub.column_id = i.sub_column
        JOIN side AS sup ON sup.column_id = i.sup_column
        WHERE (sub.is_own AND sup.is_other OR sub.is_other AND sup.is_own) AND (sub.is_unique OR sup.is_unique)
          -- No "=": the planner would pair all columns of a kind before it looks at what is included.
          AND sub.compared_as IS NOT DISTINCT FROM sup.compared_as
    ),
    -- OFFSET 0 keeps what is computed in a step from being computed anew at every mention.
    matched AS (
        -- Of a set inside another, Jaccard is the smaller count over the larger; estimated counts may exceed each other.
        SELECT p.*, least(1, p.sub_count::float8 / p.sup_count)::real AS jaccard FROM passing AS p OFFSET 0
    ),
    overlapping AS (
        SELECT m.*, coret.word_overlap(m.sub_hashes, m.sup_hashes) AS overlap FROM matched AS m
        -- The score is 0.5 * jaccard + 0.25 * cosine + 0.25 * overlap, and neither of the latter exceeds 1. (1e-6: rounding.)
        WHERE 0.5 * m.jaccard + 0.5 >= least_score - 1e-6 OFFSET 0
    ),
    compared AS (
        SELECT o.*, coret.header_similarity(o.sub_embedding <=> o.sup_embedding, o.overlap) AS header_similarity FROM overlapping AS o
        -- No vector is looked at that can't lift the score that far.
        WHERE 0.5 * o.jaccard + 0.25 + 0.25 * o.overlap >= least_score - 1e-6 OFFSET 0
    ),
    scored AS (
        SELECT c.*, (0.5 * c.jaccard + 0.5 * c.header_similarity)::real AS score FROM compared AS c OFFSET 0
    )
    SELECT s.sub_table, s.sup_table, s.sub_column, s.sup_column, s.score, s.jaccard, s.header_similarity,
           s.sub_is_unique, s.sup_is_unique, s.is_sampled
    FROM scored AS s
    WHERE s.score >= least_score
      AND (s.sub_column, s.sup_column) NOT IN (SELECT r.column_a, r.column_b FROM coret.rejected_columns AS r);
END;
COMMENT ON FUNCTION coret.scored_pairs(bigint[], bigint[], real, bigint[]) IS
    'Column pairs between tables of two sets (NULL: the same one; else without a table in common) that pass the gate (one side unique, sub''s distinct values included in sup''s), with their score (only_columns: among these alone); without those that score less than least_score or that people rejected.';

CREATE OR REPLACE FUNCTION coret.best_pairs(own_tables bigint[], other_tables bigint[] DEFAULT NULL, least_score real DEFAULT 0, only_columns bigint[] DEFAULT NULL)
RETURNS TABLE (table_a bigint, table_b bigint, column_a bigint, column_b bigint, score real, jaccard real, header_similarity real,
               a_in_b real, b_in_a real, a_is_unique boolean, b_is_unique boolean, is_sampled boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH best AS (
        SELECT DISTINCT ON (least(s.sub_table, s.sup_table), greatest(s.sub_table, s.sup_table)) s.*, s.sub_table < s.sup_table AS sub_is_a
        FROM coret.scored_pairs(own_tables, other_tables, least_score, only_columns) AS s
        ORDER BY least(s.sub_table, s.sup_table), greatest(s.sub_table, s.sup_table), s.score DESC, s.sub_column, s.sup_column
    )
    SELECT least(b.sub_table, b.sup_table), greatest(b.sub_table, b.sup_table),
           CASE WHEN b.sub_is_a THEN b.sub_column ELSE b.sup_column END,
           CASE WHEN b.sub_is_a THEN b.sup_column ELSE b.sub_column END,
           b.score, b.jaccard, b.header_similarity,
           CASE WHEN b.sub_is_a THEN 1 ELSE b.jaccard END, CASE WHEN b.sub_is_a THEN b.jaccard ELSE 1 END,
           CASE WHEN b.sub_is_a THEN b.sub_is_unique ELSE b.sup_is_unique END,
           CASE WHEN b.sub_is_a THEN b.sup_is_unique ELSE b.sub_is_unique END,
           b.is_sampled
    FROM best AS b;
END;
COMMENT ON FUNCTION coret.best_pairs(bigint[], bigint[], real, bigint[]) IS
    'Of coret.scored_pairs the best of every two tables.';

CREATE OR REPLACE FUNCTION coret.compatible_among_as(seal text, table_ids bigint[])
RETURNS TABLE (table_a bigint, table_b bigint, column_a bigint, column_b bigint, score real, jaccard real, header_similarity real,
               a_in_b real, b_in_a real, a_is_unique boolean, b_is_unique boolean, is_sampled boolean)
-- In PL/pgSQL, which keeps its plan: planning took longer than computing the pairs of a question.
LANGUAGE plpgsql STABLE STRICT
-- Scores are made of keys, which no reader may see, and which of all the pairs a column is in may be
-- told is known only after them: the rights are looked at first, here, once a column.
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
DECLARE
    reader constant oid := coret.sealed_reader(seal);
    sees_all constant boolean := coret.sees_all(reader);
    visible_columns bigint[];
BEGIN
    SELECT array_agg(c.column_id) INTO visible_columns
    FROM (SELECT t.table_id, t.table_oid FROM coret.catalog_table AS t JOIN coret.source AS s USING (source_id)
          WHERE t.table_id = ANY (table_ids)
            AND (sees_all OR s.kind = 'here' AND coret.is_current(t.table_oid, t.schema_name, t.table_name) AND coret.reads_table(t.table_oid, reader))
          OFFSET 0) AS t
    JOIN coret.catalog_column AS c USING (table_id)
    WHERE sees_all OR has_column_privilege(reader, t.table_oid, c.attnum, 'SELECT');
    RETURN QUERY SELECT * FROM coret.best_pairs(table_ids, only_columns => coalesce(visible_columns, '{}'));
END $$;
COMMENT ON FUNCTION coret.compatible_among_as(text, bigint[]) IS 'coret.compatible_among with the rights of the role that a seal (coret.seal) is made for.';

CREATE OR REPLACE FUNCTION coret.compatible_among(table_ids bigint[])
RETURNS TABLE (table_a bigint, table_b bigint, column_a bigint, column_b bigint, score real, jaccard real, header_similarity real,
               a_in_b real, b_in_a real, a_is_unique boolean, b_is_unique boolean, is_sampled boolean)
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    SELECT c.* FROM coret.compatible_among_as((SELECT s.seal FROM coret.seal AS s), table_ids) AS c;
END;
COMMENT ON FUNCTION coret.compatible_among(bigint[]) IS
    'The compatibility of every two of some tables, by columns the reader may SELECT, computed now from facts and inclusions: also what lies below the floor of what is stored.';

CREATE OR REPLACE FUNCTION coret.refresh_compatibility(changed_tables bigint[], later_tables bigint[] DEFAULT '{}') RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
    least_score real := (SELECT s.score_floor FROM coret.compatibility_setting AS s);
    others bigint[];
    stored bigint := 0;
    found_rows bigint;
BEGIN
    DELETE FROM coret.compatibility AS c USING unnest(changed_tables) AS changed(table_id)
    WHERE c.table_a = changed.table_id AND NOT EXISTS (SELECT FROM unnest(later_tables) AS l(table_id) WHERE l.table_id = c.table_b);
    DELETE FROM coret.compatibility AS c USING unnest(changed_tables) AS changed(table_id)
    WHERE c.table_b = changed.table_id AND NOT EXISTS (SELECT FROM unnest(later_tables) AS l(table_id) WHERE l.table_id = c.table_a);
    -- With each other, then with the rest of the pool, so many tables at a time that memory stays
    -- small however large the pool is.
    FOR others IN
        SELECT NULL
        UNION ALL
        SELECT array_agg(t.table_id)
        FROM (SELECT r.table_id, row_number() OVER (ORDER BY r.table_id) AS place
              FROM (SELECT t.table_id FROM coret.catalog_table AS t
                    EXCEPT SELECT unnest(changed_tables) EXCEPT SELECT unnest(later_tables)) AS r) AS t
        GROUP BY t.place / 1000
    LOOP
        INSERT INTO coret.compatibility (table_a, table_b, column_a, column_b, score, jaccard,
            header_similarity, a_in_b, b_in_a, a_is_unique, b_is_unique, is_sampled)
        SELECT b.* FROM coret.best_pairs(changed_tables, others, least_score) AS b;
        GET DIAGNOSTICS found_rows = ROW_COUNT;
        stored := stored + found_rows;
    END LOOP;
    RETURN stored;
END $$;
COMMENT ON FUNCTION coret.refresh_compatibility(bigint[], bigint[]) IS
    'Renew compatibility for every pair with a side in changed_tables, but for pairs with later_tables, which are renewed in their turn. Returns the number of pairs stored.';

CREATE OR REPLACE VIEW coret.compatible_pair WITH (security_invoker) AS
    SELECT c.table_a, c.table_b, c.score, c.jaccard, c.header_similarity, c.cardinality,
           coret.qualified_name(ta.schema_name, ta.table_name) AS name_a, ca.column_name AS column_a,
           coret.qualified_name(tb.schema_name, tb.table_name) AS name_b, cb.column_name AS column_b
    FROM coret.compatibility AS c
    JOIN coret.catalog_table AS ta ON ta.table_id = c.table_a
    JOIN coret.catalog_table AS tb ON tb.table_id = c.table_b
    JOIN coret.catalog_column AS ca ON ca.column_id = c.column_a
    JOIN coret.catalog_column AS cb ON cb.column_id = c.column_b;
COMMENT ON VIEW coret.compatible_pair IS 'Compatibility with names: which two tables join on which columns, and how well.';
