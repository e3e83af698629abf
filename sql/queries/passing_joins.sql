-- Which of some column pairs pass the gate, their facts allowing it; where may_be_near, those of which that share of
-- the values is included. With the score of each, as the paper has it.
SELECT w.sub_column, w.sup_column,
       (0.5 * least(1, sub.distinct_count::float8 / sup.distinct_count)::real
        + 0.5 * coret.header_similarity(esub.embedding <=> esup.embedding, csub.header_words, csup.header_words))::real AS score
FROM unnest(%(sub_columns)s::bigint[], %(sup_columns)s::bigint[], %(may_be_near)s::boolean[]) AS w(sub_column, sup_column, may_be_near)
JOIN coret.column_profile AS sub ON sub.column_id = w.sub_column
JOIN coret.column_profile AS sup ON sup.column_id = w.sup_column
JOIN coret.catalog_column AS csub ON csub.column_id = w.sub_column
JOIN coret.catalog_column AS csup ON csup.column_id = w.sup_column
LEFT JOIN coret.column_keys AS ksub ON ksub.column_id = w.sub_column
LEFT JOIN coret.column_keys AS ksup ON ksup.column_id = w.sup_column
LEFT JOIN coret.embedding_model AS m ON m.is_active
LEFT JOIN coret.column_embedding AS esub ON esub.model_id = m.model_id AND esub.column_id = w.sub_column
LEFT JOIN coret.column_embedding AS esup ON esup.model_id = m.model_id AND esup.column_id = w.sup_column
WHERE (sup.is_interval AND sub.min_key >= sup.min_key AND sub.max_key <= sup.max_key)
   OR EXISTS (SELECT FROM coret.inclusion AS i WHERE i.sub_column = w.sub_column AND i.sup_column = w.sup_column)
   OR w.may_be_near AND %(least_share)s * sub.distinct_count <= CASE
        WHEN sub.is_interval AND sup.is_interval
             THEN least(sub.max_key, sup.max_key)::numeric - greatest(sub.min_key, sup.min_key) + 1
        WHEN sub.is_interval
             THEN width_bucket(sub.max_key, ksup.keys) - width_bucket(greatest(sub.min_key, -9223372036854775807) - 1, ksup.keys)
        WHEN sup.is_interval
             THEN (SELECT count(*) FROM unnest(ksub.keys) AS key WHERE key BETWEEN sup.min_key AND sup.max_key)
        ELSE (SELECT count(*) FROM (SELECT unnest(ksub.keys) INTERSECT SELECT unnest(ksup.keys)) AS shared)
    END
