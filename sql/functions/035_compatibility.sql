-- Compatibility of tables: the gate over column pairs, the score, the best pair a table pair.

CREATE OR REPLACE FUNCTION coret.passing_columns(of_tables bigint[], without_tables bigint[] DEFAULT '{}')
RETURNS TABLE (sub_column bigint, sup_column bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH keyed AS MATERIALIZED (
        SELECT k.*, k.table_id = ANY (of_tables) AS is_asked
        FROM coret.keyed_column AS k WHERE k.table_id <> ALL (without_tables)
    )
    -- In an interval the range alone tells: such pairs are never stored.
    SELECT sub.column_id, sup.column_id
    FROM keyed AS sub JOIN keyed AS sup ON sup.key_kind = sub.key_kind
    WHERE sup.is_interval
      AND sub.table_id <> sup.table_id
      AND (sub.is_asked OR sup.is_asked)
      AND (sub.is_unique OR sup.is_unique)
      AND (sub.distinct_count, sub.column_id) < (sup.distinct_count, sup.column_id)
      AND sub.min_key >= sup.min_key AND sub.max_key <= sup.max_key
    UNION ALL
    SELECT i.sub_column, i.sup_column
    FROM coret.inclusion AS i
    JOIN keyed AS sub ON sub.column_id = i.sub_column
    JOIN keyed AS sup ON sup.column_id = i.sup_column
    WHERE sub.is_asked OR sup.is_asked;
END;
COMMENT ON FUNCTION coret.passing_columns(bigint[], bigint[]) IS
    'Column pairs that pass the gate (one side unique, sub''s distinct values included in sup''s) with a side in of_tables and none in without_tables.';

CREATE OR REPLACE FUNCTION coret.header_similarity(cosine_distance float8, words_a text[], words_b text[]) RETURNS real
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (0.5 * greatest(0, least(1, 1 - coalesce(cosine_distance, 1))) + 0.5 * coret.word_overlap(words_a, words_b))::real;
COMMENT ON FUNCTION coret.header_similarity(float8, text[], text[]) IS
    '0.5 * cosine of two header embeddings (clamped to 0..1; 0 where one is missing) + 0.5 * overlap coefficient of the header words.';

CREATE OR REPLACE FUNCTION coret.refresh_compatibility(changed_tables bigint[], later_tables bigint[] DEFAULT '{}') RETURNS bigint
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    DELETE FROM coret.compatibility
    WHERE (table_a = ANY (changed_tables) OR table_b = ANY (changed_tables))
      AND table_a <> ALL (later_tables) AND table_b <> ALL (later_tables);
    -- Scored before the best is sought: not once more for every comparison of the sort.
    WITH scored AS MATERIALIZED (
        SELECT sub.table_id AS sub_table, sup.table_id AS sup_table, i.sub_column, i.sup_column,
               (psub.distinct_count::float8 / psup.distinct_count)::real AS jaccard,
               coret.header_similarity(esub.embedding <=> esup.embedding, sub.header_words, sup.header_words) AS header_similarity,
               psub.is_unique AS sub_is_unique, psup.is_unique AS sup_is_unique
        FROM coret.passing_columns(changed_tables, later_tables) AS i
        JOIN coret.catalog_column AS sub ON sub.column_id = i.sub_column
        JOIN coret.catalog_column AS sup ON sup.column_id = i.sup_column
        JOIN coret.column_profile AS psub ON psub.column_id = i.sub_column
        JOIN coret.column_profile AS psup ON psup.column_id = i.sup_column
        LEFT JOIN coret.embedding_model AS m ON m.is_active
        LEFT JOIN coret.column_embedding AS esub ON esub.model_id = m.model_id AND esub.column_id = i.sub_column
        LEFT JOIN coret.column_embedding AS esup ON esup.model_id = m.model_id AND esup.column_id = i.sup_column
    ),
    best AS (
        SELECT DISTINCT ON (least(sub_table, sup_table), greatest(sub_table, sup_table))
               *, (0.5 * jaccard + 0.5 * header_similarity)::real AS score
        FROM scored
        ORDER BY least(sub_table, sup_table), greatest(sub_table, sup_table),
                 (0.5 * jaccard + 0.5 * header_similarity)::real DESC, sub_column, sup_column
    ),
    stored AS (
        INSERT INTO coret.compatibility (table_a, table_b, column_a, column_b, score, jaccard,
            header_similarity, a_in_b, b_in_a, a_is_unique, b_is_unique)
        SELECT least(sub_table, sup_table), greatest(sub_table, sup_table),
               CASE WHEN sub_table < sup_table THEN sub_column ELSE sup_column END,
               CASE WHEN sub_table < sup_table THEN sup_column ELSE sub_column END,
               score, jaccard, header_similarity,
               CASE WHEN sub_table < sup_table THEN 1 ELSE jaccard END,
               CASE WHEN sub_table < sup_table THEN jaccard ELSE 1 END,
               CASE WHEN sub_table < sup_table THEN sub_is_unique ELSE sup_is_unique END,
               CASE WHEN sub_table < sup_table THEN sup_is_unique ELSE sub_is_unique END
        FROM best
        RETURNING 1
    )
    SELECT count(*) FROM stored;
END;
COMMENT ON FUNCTION coret.refresh_compatibility(bigint[], bigint[]) IS
    'Renew compatibility for every pair with a side in changed_tables, but for pairs with later_tables, which are renewed in their turn. Returns the number of pairs stored.';

CREATE OR REPLACE VIEW coret.compatible_pair AS
    SELECT c.table_a, c.table_b, c.score, c.jaccard, c.header_similarity, c.cardinality, c.evidence,
           coret.qualified_name(ta.schema_name, ta.table_name) AS name_a, ca.column_name AS column_a,
           coret.qualified_name(tb.schema_name, tb.table_name) AS name_b, cb.column_name AS column_b
    FROM coret.compatibility AS c
    JOIN coret.catalog_table AS ta ON ta.table_id = c.table_a
    JOIN coret.catalog_table AS tb ON tb.table_id = c.table_b
    JOIN coret.catalog_column AS ca ON ca.column_id = c.column_a
    JOIN coret.catalog_column AS cb ON cb.column_id = c.column_b
    WHERE c.evidence <> 'rejected';
COMMENT ON VIEW coret.compatible_pair IS 'Compatibility with names: which two tables join on which columns, and how well.';

CREATE OR REPLACE FUNCTION coret.compatible_with(table_id bigint)
RETURNS TABLE (other_id bigint, score real, own_column bigint, other_column bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT c.table_b, c.score, c.column_a, c.column_b FROM coret.compatibility AS c
    WHERE c.table_a = compatible_with.table_id AND c.evidence <> 'rejected'
    UNION ALL
    SELECT c.table_a, c.score, c.column_b, c.column_a FROM coret.compatibility AS c
    WHERE c.table_b = compatible_with.table_id AND c.evidence <> 'rejected';
END;
COMMENT ON FUNCTION coret.compatible_with(bigint) IS 'Every table that joins with one table (by its id): score and the two columns, seen from that table.';
