-- Candidates: the tables nearest to a question.

CREATE OR REPLACE FUNCTION coret.is_current(table_oid oid, schema_name text, table_name text) RETURNS boolean
LANGUAGE sql STABLE STRICT
-- Not to_regclass: it raises an error for a schema the role has no USAGE on.
RETURN EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
               WHERE c.oid = table_oid AND c.relname = table_name AND n.nspname = schema_name);
COMMENT ON FUNCTION coret.is_current(oid, text, text) IS
    'Whether a table of this database still has the OID and the name of the catalog: false once dropped, recreated or renamed.';

CREATE OR REPLACE FUNCTION coret.index_type(dimension integer) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
-- pgvector indexes vector up to 2,000 dimensions, halfvec up to 4,000.
RETURN format('%s(%s)', CASE WHEN dimension <= 2000 THEN 'vector' ELSE 'halfvec' END, dimension);
COMMENT ON FUNCTION coret.index_type(integer) IS 'The type that embeddings are cast to in a model''s HNSW index, by its dimension.';

CREATE OR REPLACE FUNCTION coret.build_hnsw_index(model_id smallint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
-- Only a table's owner may index it; a refresh may be another role's.
SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    index_type text;
BEGIN
    SELECT coret.index_type(m.dimension) INTO STRICT index_type
    FROM coret.embedding_model AS m WHERE m.model_id = build_hnsw_index.model_id;
    EXECUTE format(
        'CREATE INDEX IF NOT EXISTS %I ON coret.table_embedding USING hnsw ((embedding::%s) %s) WHERE model_id = %s',
        'table_embedding_hnsw_' || model_id, index_type,
        CASE WHEN index_type LIKE 'vector%' THEN 'vector_cosine_ops' ELSE 'halfvec_cosine_ops' END, model_id);
END $$;
COMMENT ON FUNCTION coret.build_hnsw_index(smallint) IS 'Build the HNSW cosine index of one embedding model, where it is missing.';

CREATE OR REPLACE FUNCTION coret.activate_model(model_id smallint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT AS $$
BEGIN
    PERFORM coret.build_hnsw_index(model_id);
    -- Never two at once: the unique index is checked row by row.
    UPDATE coret.embedding_model AS m SET is_active = false WHERE m.is_active AND m.model_id <> activate_model.model_id;
    UPDATE coret.embedding_model AS m SET is_active = true WHERE m.model_id = activate_model.model_id;
END $$;
COMMENT ON FUNCTION coret.activate_model(smallint) IS
    'Build an embedding model''s index and let it answer questions from now on, instead of the one before.';

-- Load pgvector's library: a role that is no superuser may only name settings the server knows.
DO $$ BEGIN PERFORM '[1]'::vector; END $$;

CREATE OR REPLACE FUNCTION coret.candidates(question_embedding vector, k integer DEFAULT 10, include_vanished boolean DEFAULT false)
RETURNS TABLE (rank integer, table_id bigint, schema_name text, table_name text, relevance real, is_current boolean)
LANGUAGE plpgsql STABLE STRICT
-- Settings named here go back to the caller's when the function ends. The path is that of coret's
-- installation: where the type vector is.
SET search_path FROM CURRENT
SET hnsw.iterative_scan = 'strict_order'
SET hnsw.ef_search = 100
SET enable_indexscan = on
SET enable_sort = on
SET jit = off
AS $$
DECLARE
    model record;
    nearest text;
    hits jsonb;
    -- Below some thousand tables an exact scan costs milliseconds and misses nothing; but less where
    -- every table looked at has its rights looked at too.
    least_for_index constant integer := CASE WHEN row_security_active('coret.table_embedding') THEN 500 ELSE 5000 END;
BEGIN
    SELECT m.model_id, m.dimension, coret.index_type(m.dimension) AS index_type,
           (SELECT c.reltuples FROM pg_class AS c WHERE c.oid = 'coret.table_embedding'::regclass) AS tables
    INTO model FROM coret.embedding_model AS m WHERE m.is_active;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'coret: no embedding model is active'
            USING HINT = 'Run "coret refresh" first.', ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF k < 0 THEN
        RAISE EXCEPTION 'coret: k is %', k USING HINT = 'Ask for as many candidates as you want.', ERRCODE = 'invalid_parameter_value';
    ELSIF vector_dims(question_embedding) <> model.dimension THEN
        RAISE EXCEPTION 'coret: the question has % dimensions, the active embedding model has %',
            vector_dims(question_embedding), model.dimension
            USING HINT = 'Embed the question with the active model (see coret.embedding_model).', ERRCODE = 'invalid_parameter_value';
    END IF;
    nearest := format($query$
        SELECT coalesce(jsonb_agg(n ORDER BY n.distance, n.table_id), '[]')
        FROM (SELECT t.table_id, t.schema_name, t.table_name, c.is_current,
                     (e.embedding::%1$s) <=> $1::%1$s AS distance
              FROM coret.table_embedding AS e
              JOIN coret.catalog_table AS t ON t.table_id = e.table_id
              JOIN coret.source AS s ON s.source_id = t.source_id
              -- Of a table elsewhere only the next refresh can tell.
              CROSS JOIN LATERAL (SELECT s.kind <> 'here' OR coret.is_current(t.table_oid, t.schema_name, t.table_name)) AS c(is_current)
              WHERE e.model_id = %2$s AND ($3 OR c.is_current)
              ORDER BY (e.embedding::%1$s) <=> $1::%1$s, e.table_id
              LIMIT $2) AS n$query$, model.index_type, model.model_id);
    -- Without sorting, only the index gives the order.
    PERFORM set_config('enable_indexscan', (model.tables >= least_for_index)::text, true),
            set_config('enable_sort', (model.tables < least_for_index)::text, true);
    PERFORM set_config('hnsw.ef_search', least(1000, greatest(100, 4 * least(k, 1000)))::text, true);
    EXECUTE nearest INTO hits USING question_embedding, k, include_vanished;
    -- The index gives up after so many tables that the reader may not see: then all are looked at.
    IF jsonb_array_length(hits) < k AND model.tables >= least_for_index THEN
        PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_sort', 'on', true);
        EXECUTE nearest INTO hits USING question_embedding, k, include_vanished;
    END IF;
    RETURN QUERY
        SELECT (row_number() OVER (ORDER BY n.distance, n.table_id))::integer, n.table_id, n.schema_name, n.table_name,
               (1 - n.distance)::real, n.is_current
        FROM jsonb_to_recordset(hits) AS n(table_id bigint, schema_name text, table_name text, distance float8, is_current boolean)
        ORDER BY 1;
END $$;
COMMENT ON FUNCTION coret.candidates(vector, integer, boolean) IS
    'The k tables nearest to a question''s embedding by cosine (relevance = cosine), of those the reader may SELECT. Tables dropped, recreated or renamed after the last refresh are left out, or shown with is_current = false.';

CREATE OR REPLACE FUNCTION coret.tables_holding_as(seal text, phrases text[]) RETURNS TABLE (phrase text, table_ids bigint[])
LANGUAGE sql STABLE STRICT
-- Under row-level security no index can look for a value: the rights are looked at after it.
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET jit = off
BEGIN ATOMIC
    WITH asking AS MATERIALIZED (SELECT r.reader, coret.sees_all(r.reader) AS sees_all FROM (SELECT coret.sealed_reader(seal) AS reader) AS r)
    SELECT p.phrase, array_agg(DISTINCT c.table_id)
    FROM unnest(phrases) AS p(phrase)
    CROSS JOIN LATERAL (SELECT f.column_id FROM coret.column_phrases AS f WHERE f.phrases @> ARRAY[p.phrase COLLATE "C"] OFFSET 0) AS f
    JOIN coret.catalog_column AS c USING (column_id)
    JOIN coret.catalog_table AS t USING (table_id)
    JOIN coret.source AS s USING (source_id)
    CROSS JOIN asking AS a
    WHERE a.sees_all
       OR s.kind = 'here' AND coret.is_current(t.table_oid, t.schema_name, t.table_name)
          AND coret.reads_table(t.table_oid, a.reader) AND NOT coret.rows_are_filtered(t.table_oid, a.reader)
          AND has_column_privilege(a.reader, t.table_oid, c.attnum, 'SELECT')
    GROUP BY p.phrase;
END;
COMMENT ON FUNCTION coret.tables_holding_as(text, text[]) IS 'coret.tables_holding with the rights of the role that a seal (coret.seal) is made for.';

CREATE OR REPLACE FUNCTION coret.tables_holding(phrases text[]) RETURNS TABLE (phrase text, table_ids bigint[])
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    SELECT h.phrase, h.table_ids FROM coret.tables_holding_as((SELECT s.seal FROM coret.seal AS s), phrases) AS h;
END;
COMMENT ON FUNCTION coret.tables_holding(text[]) IS
    'The tables that hold each of some phrases (lower-case words) as a value of a column the reader may read, or as the first words of one (two words or more).';
