-- What a refresh has to do.

-- With its owner's rights: who may read coret.status or coret.stale may not read all that this reads.
CREATE OR REPLACE VIEW coret.step_input AS
    SELECT t.table_id, s.step,
           md5(concat_ws('|', t.definition_hash, CASE s.step
               WHEN 'snapshot' THEN t.data_version
               WHEN 'profile' THEN t.data_version
               WHEN 'purpose' THEN concat_ws('|', (SELECT p.content_hash FROM coret.table_snapshot AS p WHERE p.table_id = t.table_id),
                                                  (SELECT x.input_hash FROM coret.table_step AS x WHERE x.table_id = t.table_id AND x.step = 'profile'),
                                                  (SELECT n.purpose FROM coret.purpose_note AS n WHERE n.schema_name = t.schema_name AND n.table_name = t.table_name))
               WHEN 'embedding' THEN concat_ws('|', (SELECT p.purpose FROM coret.purpose AS p WHERE p.table_id = t.table_id),
                                                    (SELECT p.content_hash FROM coret.table_snapshot AS p WHERE p.table_id = t.table_id))
               ELSE (SELECT x.input_hash FROM coret.table_step AS x WHERE x.table_id = t.table_id AND x.step = 'profile')
           END)) AS input_hash
    FROM coret.catalog_table AS t
    CROSS JOIN (VALUES ('snapshot'), ('profile'), ('purpose'), ('embedding'), ('inclusion'), ('compatibility'), ('joins')) AS s(step);
COMMENT ON VIEW coret.step_input IS 'A hash of what each refresh step reads for each table: the step is due when it differs from what coret.table_step recorded.';

CREATE OR REPLACE FUNCTION coret.due_tables(wanted_step text, setting text DEFAULT '')
RETURNS TABLE (table_id bigint, input_hash text)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT i.table_id, i.input_hash
    FROM coret.step_input AS i
    LEFT JOIN coret.table_step AS done ON done.table_id = i.table_id AND done.step = i.step
    WHERE i.step = wanted_step
      AND (done.problem IS NOT NULL OR (done.input_hash, done.setting) IS DISTINCT FROM (i.input_hash, due_tables.setting))
    ORDER BY i.table_id;
END;
COMMENT ON FUNCTION coret.due_tables(text, text) IS
    'Tables for which a step is due: its input or its setting (model, seed ...) changed, or it was skipped last time.';

CREATE OR REPLACE VIEW coret.status AS
    SELECT s.step, (SELECT count(*) FROM coret.catalog_table) AS tables,
           count(d.table_id) FILTER (WHERE d.problem IS NULL) AS done,
           count(d.problem) AS skipped,
           (SELECT count(*) FROM coret.step_input AS i
            LEFT JOIN coret.table_step AS x ON x.table_id = i.table_id AND x.step = i.step
            WHERE i.step = s.step AND (x.problem IS NOT NULL OR x.input_hash IS DISTINCT FROM i.input_hash)) AS due,
           max(d.finished_at) AS last_finished_at
    FROM (VALUES (1, 'snapshot'), (2, 'profile'), (3, 'purpose'), (4, 'embedding'), (5, 'inclusion'), (6, 'compatibility'), (7, 'joins')) AS s(position, step)
    LEFT JOIN coret.table_step AS d ON d.step = s.step
    GROUP BY s.position, s.step ORDER BY s.position;
COMMENT ON VIEW coret.status IS 'How many tables of the pool each refresh step has done, has skipped, still has to do by the catalog of the last refresh, and when it last ended.';

CREATE OR REPLACE FUNCTION coret.read_whole(name text, wanted boolean DEFAULT true) RETURNS void
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    UPDATE coret.catalog_table AS t SET is_read_whole = wanted
    WHERE t.table_id = coret.table_named(name) AND t.is_read_whole <> wanted;
    DELETE FROM coret.table_step AS s USING coret.catalog_table AS t
    WHERE t.table_id = coret.table_named(name) AND s.table_id = t.table_id AND s.step IN ('profile', 'inclusion', 'compatibility', 'joins');
END;
COMMENT ON FUNCTION coret.read_whole(text, boolean) IS
    'Have a big table profiled exactly by the next refresh and those after it, instead of from a sketch; wanted => false takes that back.';

-- A barrier: else a function of the reader's own could be shown rows before they are left out.
CREATE OR REPLACE VIEW coret.stale WITH (security_barrier) AS
    SELECT coret.qualified_name(t.schema_name, t.table_name) AS table_name, i.step,
           CASE WHEN done.table_id IS NULL THEN 'never done'
                -- Why may quote names and values of any column, or of another table.
                WHEN done.problem IS NOT NULL THEN concat_ws(': ', 'skipped', CASE WHEN coret.sees_all() THEN done.problem END)
                ELSE 'what it reads has changed' END AS reason,
           done.finished_at AS last_finished_at
    FROM coret.step_input AS i
    JOIN coret.catalog_table AS t USING (table_id)
    JOIN coret.source AS s USING (source_id)
    LEFT JOIN coret.table_step AS done ON done.table_id = i.table_id AND done.step = i.step
    WHERE (done.problem IS NOT NULL OR done.input_hash IS DISTINCT FROM i.input_hash)
      -- The owner's rights read what tells it; whoever asks sees tables of its own.
      AND (coret.sees_all() OR s.kind = 'here' AND coret.is_current(t.table_oid, t.schema_name, t.table_name) AND coret.reads_table(t.table_oid));
COMMENT ON VIEW coret.stale IS 'Which tables need which step of a refresh, and why: by what the last refresh found in the catalog.';

CREATE OR REPLACE FUNCTION coret.analyze_tables(names text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
-- Before Postgres 17 only a table's owner may analyse it.
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('ANALYZE coret.%I', name);
    END LOOP;
END $$;
COMMENT ON FUNCTION coret.analyze_tables(text[]) IS 'Tell the planner how large tables of the schema coret have become.';
