-- What each role may do; nothing is left to PUBLIC. Names, not signatures: no two of ours differ in rights.
REVOKE ALL ON SCHEMA coret FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA coret FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA coret FROM PUBLIC;

DO $$
DECLARE
    -- They run with the rights of who calls them, but for ask_worker and those named ..._as, which
    -- take a seal.
    of_readers constant text[] := ARRAY[
        -- to be called
        'retrieve', 'schema_slice', 'retrieve_call', 'submit', 'fetch', 'candidates', 'adjust', 'compatible', 'compatible_among',
        'join_path', 'explain', 'preview_payload',
        -- what those and the policies call
        'reader', 'reader_name', 'rows_are_filtered', 'reads_table', 'reads_whole', 'sees_all', 'sees_columns', 'sees_column',
        'sees_values', 'sees_key', 'sees_purpose', 'qualified_name', 'column_ids', 'table_named', 'column_names', 'join_reasons',
        'is_current', 'index_type', 'compatible_among_as', 'tables_holding', 'tables_holding_as', 'masked', 'shown_level', 'shown_values', 'markdown_cell',
        'snapshot_markdown', 'shown_purpose', 'purpose_payload', 'selection_payload', 'worker_lock', 'check_call', 'answer_of',
        'answer_tables', 'pause_s', 'ask_worker', 'explain_json'];
    of_admins constant text[] := ARRAY['set_sample_policy', 'deny', 'undeny'];
    -- The owner's alone: how the server reaches itself.
    of_owner constant text[] := ARRAY['conninfo', 'own_conninfo', 'elsewhere', 'await_answer', 'sealed_role', 'sealed_reader'];
    routine record;
BEGIN
    IF to_regrole('coret_reader') IS NULL OR to_regrole('coret_worker') IS NULL
       OR to_regrole('coret_refresher') IS NULL OR to_regrole('coret_admin') IS NULL THEN
        RETURN;
    END IF;
    GRANT USAGE ON SCHEMA coret TO coret_reader, pg_monitor;
    FOR routine IN SELECT p.oid::regprocedure AS signature, p.proname::text AS name FROM pg_proc AS p WHERE p.pronamespace = 'coret'::regnamespace LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM coret_reader, coret_worker, coret_refresher, coret_admin', routine.signature);
        IF routine.name <> ALL (of_owner) THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO %I', routine.signature,
                           CASE WHEN routine.name = ANY (of_readers) THEN 'coret_reader'
                                WHEN routine.name = ANY (of_admins) THEN 'coret_admin' ELSE 'coret_refresher' END);
        END IF;
    END LOOP;

    REVOKE ALL ON ALL TABLES IN SCHEMA coret FROM coret_reader, coret_worker, coret_refresher, coret_admin;
    GRANT SELECT ON coret.schema_version, coret.routine_build, coret.source, coret.embedding_model,
        coret.catalog_table, coret.catalog_column, coret.declared_key, coret.column_profile, coret.column_sample, coret.purpose,
        coret.table_embedding, coret.column_embedding, coret.compatibility, coret.join_edge, coret.join_verdict,
        coret.retrieval, coret.retrieval_table, coret.request,
        coret.compatible_pair, coret.join_edge_both, coret.join_evidence, coret.seal, coret.worker, coret.status, coret.stale
        TO coret_reader;
    -- Of the ledger what a call cost, not what was sent: rights may have changed since.
    GRANT SELECT (call_id, use, retrieval_id, endpoint, model_name, prompt_hash, prompt_tokens, completion_tokens, seconds, outcome, called_at, asked_by)
        ON coret.llm_call TO coret_reader;
    -- Not why a step skipped a table: that may quote any of its names and values.
    GRANT SELECT (table_id, step, input_hash, setting, finished_at) ON coret.table_step TO coret_reader;
    -- Not the ids: a number taken beforehand would stop somebody else's question.
    GRANT INSERT (question, k, tau, path, path_reason, model_id, chat_model, warnings, seconds, is_connected, asked_by) ON coret.retrieval TO coret_reader;
    GRANT INSERT (use, table_id, endpoint, model_name, prompt_hash, prompt, prompt_tokens, completion_tokens, seconds, outcome, asked_by)
        ON coret.llm_call TO coret_reader;
    GRANT INSERT ON coret.retrieval_table TO coret_reader;
    GRANT UPDATE (retrieval_id) ON coret.llm_call TO coret_reader;
    -- Not asked_by: the server writes that.
    GRANT INSERT (question, k, tau, deadline) ON coret.request TO coret_reader;
    GRANT SELECT ON coret.status, coret.metrics TO pg_monitor;
    -- coret.metrics counts workers; what a view calls is called with its reader's rights.
    GRANT EXECUTE ON FUNCTION coret.worker_lock() TO pg_monitor;
    GRANT SELECT ON coret.metrics TO coret_refresher;

    GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA coret TO coret_refresher;
    REVOKE ALL ON coret.seal_key, coret.sample_policy, coret.deny_pattern, coret.request FROM coret_refresher;
    -- Through the view coret.seal the secret itself could be deleted.
    REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON coret.schema_version, coret.routine_build, coret.seal FROM coret_refresher;
    GRANT SELECT ON coret.sample_policy, coret.deny_pattern, coret.request TO coret_refresher;
    GRANT SELECT, INSERT, UPDATE, DELETE ON coret.sample_policy, coret.deny_pattern TO coret_admin;
    GRANT SELECT, UPDATE, DELETE ON coret.request TO coret_worker;
END $$;
