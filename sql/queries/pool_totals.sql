-- The pool at a glance.
SELECT (SELECT count(*) FROM coret.catalog_table) AS tables,
       (SELECT count(DISTINCT (source_id, schema_name)) FROM coret.catalog_table) AS schemas,
       (SELECT count(*) FROM coret.catalog_column) AS columns,
       (SELECT count(*) FROM coret.compatibility) AS compatible_pairs,
       (SELECT format('%s by %s, %s dimensions', model_name, provider, dimension)
        FROM coret.embedding_model WHERE is_active) AS embedding_model,
       (SELECT coalesce(jsonb_object_agg(made, tables), '{}')
        FROM (SELECT made_by || coalesce(' (' || model_name || ')', '') AS made, count(*) AS tables
              FROM coret.purpose GROUP BY 1) AS p) AS purposes,
       (SELECT format('job %s, %s, started %s by %s%s', job_id, state, to_char(started_at, 'YYYY-MM-DD HH24:MI:SS'),
                      started_by, coalesce(': ' || problem, ''))
        FROM coret.job ORDER BY job_id DESC LIMIT 1) AS last_job
