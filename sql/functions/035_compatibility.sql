-- Compatibility of tables: the gate over column pairs, the score, the best pair a table pair.

CREATE OR REPLACE VIEW coret.gate_column AS
    SELECT c.table_id, p.column_id, p.distinct_count, p.is_interval, p.min_key, p.max_key, p.sample_shift > 0 AS is_sampled,
           c.header_hashes,
           -- What two columns have to be alike in to be compared at all.
           CASE s.gate WHEN 'strict' THEN p.key_kind || ' ' || c.type_name ELSE p.key_kind END AS compared_as,
           p.is_unique AND (s.gate = 'families' OR p.null_count = 0) AS is_unique
    FROM coret.column_profile AS p
    JOIN coret.catalog_column AS c USING (column_id)
    CROSS JOIN coret.compatibility_setting AS s
    WHERE p.key_kind IS NOT NULL AND p.distinct_count > 0;
COMMENT ON VIEW coret.gate_column IS 'Columns that can pass the gate, as coret.compatibility_setting has it.';

CREATE OR REPLACE FUNCTION coret.passing_pairs(of_tables bigint[], without_tables bigint[] DEFAULT '{}', other_tables bigint[] DEFAULT NULL)
RETURNS TABLE (sub_table bigint, sup_table bigint, sub_column bigint, sup_column bigint, sub_is_unique boolean, sup_is_unique boolean,
               jaccard real, sub_hashes bigint[], sup_hashes bigint[], is_sampled boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH side AS MATERIALIZED (
        SELECT g.*, g.table_id = ANY (of_tables) AS is_asked
        FROM coret.gate_column AS g
        WHERE g.table_id <> ALL (without_tables)
          AND (other_tables IS NULL OR g.table_id = ANY (other_tables) OR g.table_id = ANY (of_tables))
    ),
    passing AS (
        -- In an interval the range alone tells: such pairs are never stored.
        SELECT sub.*, sup.table_id AS sup_table, sup.column_id AS sup_column, sup.distinct_count AS sup_count,
               sup.is_unique AS sup_is_unique, sup.header_hashes AS sup_hashes, sup.is_sampled AS sup_is_sampled
        FROM side AS sub JOIN side AS sup ON sup.compared_as = sub.compared_as
        WHERE sup.is_interval
          AND sub.min_key >= sup.min_key AND sub.max_key <= sup.max_key
          AND sub.table_id <> sup.table_id
          AND (sub.is_asked OR sup.is_asked)
          AND (sub.is_unique OR sup.is_unique)
          AND (sub.distinct_count, sub.column_id) < (sup.distinct_count, sup.column_id)
        UNION ALL
        SELECT sub.*, sup.table_id, sup.column_id, sup.distinct_count, sup.is_unique, sup.header_hashes, sup.is_sampled
        FROM side AS sub
        JOIN coret.inclusion AS i ON i.sub_column = sub.column_id
        JOIN side AS sup ON sup.column_id = i.sup_column AND sup.compared_as = sub.compared_as
        WHERE (sub.is_asked OR sup.is_asked) AND (sub.is_unique OR sup.is_unique)
    )
    SELECT p.table_id, p.sup_table, p.column_id, p.sup_column, p.is_unique, p.sup_is_unique,
           -- Of a set inside another, Jaccard is the smaller count over the larger.
           least(1, p.distinct_count::float8 / p.sup_count)::real, p.header_hashes, p.sup_hashes, p.is_sampled OR p.sup_is_sampled
    FROM passing AS p
    WHERE NOT EXISTS (SELECT FROM coret.rejected_columns AS r WHERE r.column_a = p.column_id AND r.column_b = p.sup_column);
END;
COMMENT ON FUNCTION coret.passing_pairs(bigint[], bigint[], bigint[]) IS
    'Column pairs that pass the gate (one side unique, sub''s distinct values included in sup''s) with a side in of_tables, the other in other_tables (NULL: anywhere) and none in without_tables; without those that people rejected.';

CREATE OR REPLACE FUNCTION coret.header_similarity(cosine_distance float8, word_overlap real) RETURNS real
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (0.5 * greatest(0, least(1, 1 - coalesce(cosine_distance, 1))) + 0.5 * word_overlap)::real;
COMMENT ON FUNCTION coret.header_similarity(float8, real) IS
    '0.5 * cosine of two header embeddings (clamped to 0..1; 0 where one is missing) + 0.5 * overlap coefficient of the header words.';

CREATE OR REPLACE FUNCTION coret.best_pairs(of_tables bigint[], without_tables bigint[], other_tables bigint[], least_score real)
RETURNS TABLE (table_a bigint, table_b bigint, column_a bigint, column_b bigint, score real, jaccard real, header_similarity real,
               a_in_b real, b_in_a real, a_is_unique boolean, b_is_unique boolean, is_sampled boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH overlapping AS MATERIALIZED (
        SELECT p.*, coret.word_overlap(p.sub_hashes, p.sup_hashes) AS overlap
        FROM coret.passing_pairs(of_tables, without_tables, other_tables) AS p
        -- With a cosine and an overlap of 1 the score would be 0.5 * jaccard + 0.5.
        WHERE p.jaccard >= 2 * least_score - 1
    ),
    -- Scored before the best is sought: not once more for every comparison of the sort.
    scored AS MATERIALIZED (
        SELECT o.*, coret.header_similarity(esub.embedding <=> esup.embedding, o.overlap) AS header_similarity
        FROM overlapping AS o
        LEFT JOIN coret.embedding_model AS m ON m.is_active
        LEFT JOIN coret.column_embedding AS esub ON esub.model_id = m.model_id AND esub.column_id = o.sub_column
        LEFT JOIN coret.column_embedding AS esup ON esup.model_id = m.model_id AND esup.column_id = o.sup_column
        -- Nor can a pair whose score would be too low even with a cosine of 1: no vector is read for it.
        WHERE 0.5 * o.jaccard + 0.25 + 0.25 * o.overlap >= least_score
    ),
    best AS (
        SELECT DISTINCT ON (least(s.sub_table, s.sup_table), greatest(s.sub_table, s.sup_table))
               s.*, (0.5 * s.jaccard + 0.5 * s.header_similarity)::real AS score, s.sub_table < s.sup_table AS sub_is_a
        FROM scored AS s
        ORDER BY least(s.sub_table, s.sup_table), greatest(s.sub_table, s.sup_table),
                 (0.5 * s.jaccard + 0.5 * s.header_similarity)::real DESC, s.sub_column, s.sup_column
    )
    SELECT least(b.sub_table, b.sup_table), greatest(b.sub_table, b.sup_table),
           CASE WHEN b.sub_is_a THEN b.sub_column ELSE b.sup_column END,
           CASE WHEN b.sub_is_a THEN b.sup_column ELSE b.sub_column END,
           b.score, b.jaccard, b.header_similarity,
           CASE WHEN b.sub_is_a THEN 1 ELSE b.jaccard END, CASE WHEN b.sub_is_a THEN b.jaccard ELSE 1 END,
           CASE WHEN b.sub_is_a THEN b.sub_is_unique ELSE b.sup_is_unique END,
           CASE WHEN b.sub_is_a THEN b.sup_is_unique ELSE b.sub_is_unique END,
           b.is_sampled
    FROM best AS b WHERE b.score >= least_score;
END;
COMMENT ON FUNCTION coret.best_pairs(bigint[], bigint[], bigint[], real) IS
    'The best column pair of every pair of tables and its score, for pairs with a side in of_tables, the other in other_tables (NULL: anywhere), none in without_tables and at least least_score.';

CREATE OR REPLACE FUNCTION coret.compatible_among(table_ids bigint[])
RETURNS TABLE (table_a bigint, table_b bigint, column_a bigint, column_b bigint, score real, jaccard real, header_similarity real,
               a_in_b real, b_in_a real, a_is_unique boolean, b_is_unique boolean, is_sampled boolean)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT * FROM coret.best_pairs(table_ids, '{}', '{}', 0);
END;
COMMENT ON FUNCTION coret.compatible_among(bigint[]) IS
    'The compatibility of every two of some tables, computed now from facts and inclusions: also what lies below the floor of what is stored.';

CREATE OR REPLACE FUNCTION coret.refresh_compatibility(changed_tables bigint[], later_tables bigint[] DEFAULT '{}') RETURNS bigint
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    DELETE FROM coret.compatibility
    WHERE (table_a = ANY (changed_tables) OR table_b = ANY (changed_tables))
      AND table_a <> ALL (later_tables) AND table_b <> ALL (later_tables);
    WITH stored AS (
        INSERT INTO coret.compatibility (table_a, table_b, column_a, column_b, score, jaccard,
            header_similarity, a_in_b, b_in_a, a_is_unique, b_is_unique, is_sampled)
        SELECT b.* FROM coret.best_pairs(changed_tables, later_tables, NULL,
                            (SELECT s.score_floor FROM coret.compatibility_setting AS s)) AS b
        RETURNING 1
    )
    SELECT count(*) FROM stored;
END;
COMMENT ON FUNCTION coret.refresh_compatibility(bigint[], bigint[]) IS
    'Renew compatibility for every pair with a side in changed_tables, but for pairs with later_tables, which are renewed in their turn. Returns the number of pairs stored.';

CREATE OR REPLACE VIEW coret.compatible_pair AS
    SELECT c.table_a, c.table_b, c.score, c.jaccard, c.header_similarity, c.cardinality,
           coret.qualified_name(ta.schema_name, ta.table_name) AS name_a, ca.column_name AS column_a,
           coret.qualified_name(tb.schema_name, tb.table_name) AS name_b, cb.column_name AS column_b
    FROM coret.compatibility AS c
    JOIN coret.catalog_table AS ta ON ta.table_id = c.table_a
    JOIN coret.catalog_table AS tb ON tb.table_id = c.table_b
    JOIN coret.catalog_column AS ca ON ca.column_id = c.column_a
    JOIN coret.catalog_column AS cb ON cb.column_id = c.column_b;
COMMENT ON VIEW coret.compatible_pair IS 'Compatibility with names: which two tables join on which columns, and how well.';
