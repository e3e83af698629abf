-- Row-level security: a reader sees of our tables what concerns tables and columns it may SELECT.
-- Made anew each time: policies are dropped with the functions they call.

-- Every table is closed, to its owner too, and opened again below.
DO $$
DECLARE
    one record;
    old record;
    keepers text := quote_ident(current_user) || CASE WHEN to_regrole('coret_refresher') IS NULL THEN '' ELSE ', coret_refresher' END;
BEGIN
    FOR one IN
        SELECT c.relname FROM pg_class AS c
        WHERE c.relnamespace = 'coret'::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_version'
    LOOP
        EXECUTE format('ALTER TABLE coret.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', one.relname);
        FOR old IN SELECT p.polname FROM pg_policy AS p WHERE p.polrelid = format('coret.%I', one.relname)::regclass LOOP
            EXECUTE format('DROP POLICY %I ON coret.%I', old.polname, one.relname);
        END LOOP;
        -- "true" costs nothing: the planner leaves it out, and indexes stay usable.
        EXECUTE format('CREATE POLICY keepers ON coret.%I TO %s USING (true) WITH CHECK (true)', one.relname, keepers);
    END LOOP;
    IF to_regrole('coret_reader') IS NULL OR to_regrole('coret_worker') IS NULL THEN
        RETURN;
    END IF;

    -- Says nothing of any table.
    FOR one IN SELECT unnest(ARRAY['source', 'embedding_model', 'compatibility_setting', 'routine_build']) AS relname LOOP
        EXECUTE format('CREATE POLICY readers ON coret.%I FOR SELECT TO coret_reader USING (true)', one.relname);
    END LOOP;

    -- (SELECT coret.reader()) is worked out once a query, not once a row. A table elsewhere has an OID of
    -- its own database: no right here tells who may read it.
    CREATE POLICY readers ON coret.catalog_table FOR SELECT TO coret_reader USING (
        has_any_column_privilege((SELECT coret.reader()), table_oid, 'SELECT')
        -- Its name too: in a restored database the OID may be another table's.
        AND has_schema_privilege((SELECT coret.reader()), (
            -- By its OID alone, not by a name, of which there may be many; regnamespace asks no table.
            SELECT c.relnamespace FROM pg_class AS c
            WHERE c.oid = table_oid AND c.relname IS NOT DISTINCT FROM table_name
              AND c.relnamespace::regnamespace::text = quote_ident(schema_name)), 'USAGE')
        AND source_id = (SELECT s.source_id FROM coret.source AS s WHERE s.kind = 'here'));
    CREATE POLICY readers ON coret.catalog_column FOR SELECT TO coret_reader USING (
        (SELECT has_column_privilege((SELECT coret.reader()), t.table_oid, catalog_column.attnum, 'SELECT')
         FROM coret.catalog_table AS t WHERE t.table_id = catalog_column.table_id));
    CREATE POLICY readers ON coret.declared_key FOR SELECT TO coret_reader USING (
        coret.sees_key(table_id, attnums) AND (parent_oid IS NULL OR coret.reads_table(parent_oid, (SELECT coret.reader()))));

    -- Values, or what was made of them: only to whom no row is hidden.
    FOR one IN SELECT unnest(ARRAY['column_profile', 'column_sample', 'column_phrases']) AS relname LOOP
        EXECUTE format('CREATE POLICY readers ON coret.%I FOR SELECT TO coret_reader USING (coret.sees_values(column_id, (SELECT coret.reader())))', one.relname);
    END LOOP;
    CREATE POLICY readers ON coret.purpose FOR SELECT TO coret_reader USING (
        coret.sees_purpose(table_id, made_by = 'person', (SELECT coret.reader())));

    FOR one IN SELECT unnest(ARRAY['table_embedding', 'table_step']) AS relname LOOP
        -- Not EXISTS, which the planner would turn into a look at all tables, to find the few that are asked for.
        EXECUTE format('CREATE POLICY readers ON coret.%1$I FOR SELECT TO coret_reader USING ((SELECT true FROM coret.catalog_table AS t WHERE t.table_id = %1$I.table_id))', one.relname);
    END LOOP;
    CREATE POLICY readers ON coret.column_embedding FOR SELECT TO coret_reader USING (coret.sees_column(column_id));

    -- Joins: who may read both sides.
    CREATE POLICY readers ON coret.compatibility FOR SELECT TO coret_reader USING (coret.sees_column(column_a) AND coret.sees_column(column_b));
    CREATE POLICY readers ON coret.join_edge FOR SELECT TO coret_reader USING (coret.sees_columns(child_columns || parent_columns));
    CREATE POLICY readers ON coret.join_verdict FOR SELECT TO coret_reader USING (
        coret.column_ids(left_schema, left_table, left_columns) IS NOT NULL
        AND coret.column_ids(right_schema, right_table, right_columns) IS NOT NULL);

    -- Everyone's own questions.
    CREATE POLICY readers ON coret.retrieval FOR SELECT TO coret_reader USING (asked_by = (SELECT coret.reader_name()));
    CREATE POLICY writers ON coret.retrieval FOR INSERT TO coret_reader WITH CHECK (asked_by = (SELECT coret.reader_name()));
    CREATE POLICY readers ON coret.retrieval_table FOR SELECT TO coret_reader USING (
        EXISTS (SELECT FROM coret.retrieval AS r WHERE r.retrieval_id = retrieval_table.retrieval_id)
        -- May it read that table still?
        AND EXISTS (SELECT FROM coret.catalog_table AS t WHERE t.table_id = retrieval_table.table_id)
        -- And the one it is joined to, by these columns?
        AND (partner IS NULL OR EXISTS (SELECT FROM coret.catalog_table AS t
                                        WHERE t.schema_name = (parse_ident(partner))[1] AND t.table_name = (parse_ident(partner))[2]))
        AND (own_columns IS NULL OR coret.column_ids(schema_name, table_name, own_columns) IS NOT NULL)
        AND (partner_columns IS NULL OR coret.column_ids((parse_ident(partner))[1], (parse_ident(partner))[2], partner_columns) IS NOT NULL));
    CREATE POLICY writers ON coret.retrieval_table FOR INSERT TO coret_reader WITH CHECK (
        EXISTS (SELECT FROM coret.retrieval AS r WHERE r.retrieval_id = retrieval_table.retrieval_id));
    CREATE POLICY readers ON coret.llm_call FOR SELECT TO coret_reader USING (asked_by = (SELECT coret.reader_name()));
    CREATE POLICY writers ON coret.llm_call FOR INSERT TO coret_reader WITH CHECK (asked_by = (SELECT coret.reader_name()));
    -- Which retrieval a call was for is known after it.
    CREATE POLICY updaters ON coret.llm_call FOR UPDATE TO coret_reader
        USING (asked_by = (SELECT coret.reader_name())) WITH CHECK (asked_by = (SELECT coret.reader_name()));
    CREATE POLICY readers ON coret.request FOR SELECT TO coret_reader USING (asked_by = current_user);
    CREATE POLICY writers ON coret.request FOR INSERT TO coret_reader WITH CHECK (asked_by = current_user);
    CREATE POLICY workers ON coret.request TO coret_worker USING (true) WITH CHECK (true);
END $$;
