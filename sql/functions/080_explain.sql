-- What was asked and answered, and how the whole fares: for people, and for monitoring.

CREATE OR REPLACE FUNCTION coret.explain_json(of_retrieval bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    result jsonb;
BEGIN
    SELECT jsonb_build_object(
               'retrieval_id', r.retrieval_id, 'question', r.question, 'asked_by', r.asked_by, 'asked_at', r.asked_at,
               'path', r.path, 'path_reason', r.path_reason, 'k', r.k, 'tau', r.tau, 'is_connected', r.is_connected,
               'embedding_model', (SELECT m.model_name FROM coret.embedding_model AS m WHERE m.model_id = r.model_id),
               'chat_model', r.chat_model, 'seconds', r.seconds, 'warnings', to_jsonb(r.warnings),
               'tables', (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                              'table', coret.qualified_name(t.schema_name, t.table_name), 'rank', t.rank, 'role', t.role, 'relevance', t.relevance,
                              'partner', t.partner, 'own_columns', to_jsonb(t.own_columns), 'partner_columns', to_jsonb(t.partner_columns),
                              'confidence', t.confidence, 'reason', t.reason)) ORDER BY t.rank), '[]')
                          FROM coret.retrieval_table AS t WHERE t.retrieval_id = r.retrieval_id),
               'llm_calls', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                 'model', c.model_name, 'endpoint', c.endpoint, 'prompt_tokens', c.prompt_tokens, 'completion_tokens', c.completion_tokens,
                                 'seconds', c.seconds, 'outcome', c.outcome) ORDER BY c.call_id), '[]')
                             FROM coret.llm_call AS c WHERE c.retrieval_id = r.retrieval_id))
    INTO result FROM coret.retrieval AS r WHERE r.retrieval_id = of_retrieval;
    IF result IS NULL THEN
        RAISE EXCEPTION 'coret: there is no retrieval % of yours', of_retrieval
            USING HINT = 'coret.retrieve returns the id; coret.retrieval lists yours.', ERRCODE = 'no_data_found';
    END IF;
    RETURN result;
END $$;
COMMENT ON FUNCTION coret.explain_json(bigint) IS 'How one of one''s own questions was answered, as JSON.';

CREATE OR REPLACE FUNCTION coret.explain(retrieval_id bigint, format text DEFAULT 'text') RETURNS SETOF text
LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    shown jsonb := coret.explain_json(retrieval_id);
    one jsonb;
BEGIN
    IF lower(format) = 'json' THEN
        RETURN NEXT jsonb_pretty(shown);
        RETURN;
    ELSIF lower(format) <> 'text' THEN
        RAISE EXCEPTION 'coret: "%" is no format of coret.explain', format USING HINT = 'Say text or json.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEXT format('Retrieval %s: %s', retrieval_id, regexp_replace(shown ->> 'question', '\s+', ' ', 'g'));
    RETURN NEXT format('  Path: %s%s  (k=%s tau=%s, embedded by %s%s)', shown ->> 'path', coalesce(': ' || (shown ->> 'path_reason'), ''),
                       shown ->> 'k', shown ->> 'tau', shown ->> 'embedding_model', coalesce(', selected by ' || (shown ->> 'chat_model'), ''));
    RETURN NEXT format('  Time: %s', (SELECT string_agg(format('%s %s ms', s.key, round(s.value::numeric * 1000, 1)), ', ')
                                      FROM jsonb_each_text(shown -> 'seconds') AS s));
    IF (shown ->> 'is_connected')::boolean IS FALSE THEN
        RETURN NEXT '  Not connected: no joins hold the whole set together';
    END IF;
    FOR one IN SELECT t.value FROM jsonb_array_elements(shown -> 'tables') AS t WHERE t.value ->> 'role' <> 'not chosen' LOOP
        RETURN NEXT format('  -> %s  (rank=%s relevance=%s)  %s', one ->> 'table', one ->> 'rank', round((one ->> 'relevance')::numeric, 3), one ->> 'role');
        IF one -> 'own_columns' IS NOT NULL THEN
            RETURN NEXT format('       Join: (%s) = %s (%s)  (confidence=%s)',
                               (SELECT string_agg(n.value, ', ') FROM jsonb_array_elements_text(one -> 'own_columns') AS n), one ->> 'partner',
                               (SELECT string_agg(n.value, ', ') FROM jsonb_array_elements_text(one -> 'partner_columns') AS n),
                               round((one ->> 'confidence')::numeric, 2));
        END IF;
        IF one ->> 'reason' IS NOT NULL THEN
            RETURN NEXT format('       Why: %s', one ->> 'reason');
        END IF;
    END LOOP;
    FOR one IN SELECT t.value FROM jsonb_array_elements(shown -> 'tables') AS t WHERE t.value ->> 'role' = 'not chosen' LOOP
        RETURN NEXT format('  not chosen: %s  (rank=%s relevance=%s)', one ->> 'table', one ->> 'rank', round((one ->> 'relevance')::numeric, 3));
    END LOOP;
    FOR one IN SELECT c.value FROM jsonb_array_elements(shown -> 'llm_calls') AS c LOOP
        RETURN NEXT format('  LLM call: %s at %s, %s + %s tokens, %s s: %s', one ->> 'model', one ->> 'endpoint', coalesce(one ->> 'prompt_tokens', '?'),
                           coalesce(one ->> 'completion_tokens', '?'), round((one ->> 'seconds')::numeric, 2), one ->> 'outcome');
    END LOOP;
    RETURN QUERY SELECT format('  Note: %s', w.value) FROM jsonb_array_elements_text(shown -> 'warnings') AS w;
END $$;
COMMENT ON FUNCTION coret.explain(bigint, text) IS
    'How one of one''s own questions was answered: path, times, each table with its join and reason, what was not chosen; as lines of text, or (format => ''json'') as JSON. Tables the caller may no longer read are left out.';

CREATE OR REPLACE VIEW coret.metrics AS
    SELECT m.metric, m.label, m.value::float8 AS value
    FROM (
        SELECT 'tables' AS metric, '' AS label, count(*)::numeric AS value FROM coret.catalog_table
        UNION ALL SELECT 'columns', '', count(*) FROM coret.catalog_column
        UNION ALL SELECT 'compatible_pairs', '', (SELECT greatest(c.reltuples, 0)::bigint FROM pg_class AS c WHERE c.oid = 'coret.compatibility'::regclass)
        UNION ALL SELECT 'joins', e.evidence, count(*) FROM coret.join_edge AS e GROUP BY e.evidence
        UNION ALL SELECT 'tables_due', s.step, s.due FROM coret.status AS s
        UNION ALL SELECT 'tables_skipped', s.step, s.skipped FROM coret.status AS s
        UNION ALL SELECT 'seconds_since_refresh', '', extract(epoch FROM now() - max(j.ended_at)) FROM coret.job AS j WHERE j.state = 'finished'
        UNION ALL SELECT 'retrievals', r.path, count(*) FROM coret.retrieval AS r GROUP BY r.path
        UNION ALL SELECT 'llm_calls', c.use || CASE c.outcome WHEN 'ok' THEN ' ok' ELSE ' failed' END, count(*) FROM coret.llm_call AS c GROUP BY 2
        UNION ALL SELECT 'llm_tokens', c.use || ' in', coalesce(sum(c.prompt_tokens), 0) FROM coret.llm_call AS c GROUP BY 2
        UNION ALL SELECT 'llm_tokens', c.use || ' out', coalesce(sum(c.completion_tokens), 0) FROM coret.llm_call AS c GROUP BY 2
        UNION ALL SELECT 'requests', r.state, count(*) FROM coret.request AS r GROUP BY r.state
        UNION ALL SELECT 'workers', '', count(*) FROM coret.worker
    ) AS m;
COMMENT ON VIEW coret.metrics IS 'Counts for monitoring: no name of a table, no question and no value is among them. compatible_pairs is the planner''s estimate.';
