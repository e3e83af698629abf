-- Questions from SQL: left as a request, answered by a worker with the rights of who asked.

CREATE OR REPLACE FUNCTION coret.worker_lock() RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[6516594, 3];
COMMENT ON FUNCTION coret.worker_lock() IS 'The advisory lock that every running worker shares (ours are 0x636F72 = "cor" and a number).';

CREATE OR REPLACE VIEW coret.worker AS
    SELECT DISTINCT l.pid FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
      AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
      AND l.classid::bigint = (coret.worker_lock())[1] AND l.objid::bigint = (coret.worker_lock())[2];
COMMENT ON VIEW coret.worker IS 'The workers that run now (`coret worker`), by the process id of their session.';

CREATE OR REPLACE FUNCTION coret.check_call(question text, k integer, tau real, timeout_s float8) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF (question ~ '\S') IS NOT TRUE THEN
        RAISE EXCEPTION 'coret: the question is empty' USING HINT = 'Ask one in plain words.', ERRCODE = 'invalid_parameter_value';
    ELSIF length(question) > 8000 THEN
        RAISE EXCEPTION 'coret: the question is % characters long', length(question)
            USING HINT = 'Shorten it to at most 8,000.', ERRCODE = 'invalid_parameter_value';
    ELSIF k NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'coret: k is %', k USING HINT = 'Ask for 1 to 1,000 candidates.', ERRCODE = 'invalid_parameter_value';
    ELSIF NOT (tau BETWEEN 0 AND 1) THEN
        RAISE EXCEPTION 'coret: tau is %', tau USING HINT = 'Give a score from 0 to 1.', ERRCODE = 'invalid_parameter_value';
    ELSIF (timeout_s > 0 AND timeout_s <= 3600) IS NOT TRUE THEN
        RAISE EXCEPTION 'coret: the timeout is % seconds', timeout_s
            USING HINT = 'Give a number of seconds up to 3,600.', ERRCODE = 'invalid_parameter_value';
    ELSIF NOT EXISTS (SELECT FROM coret.worker) THEN
        RAISE EXCEPTION 'coret: no worker is running'
            USING HINT = 'Start one: "coret worker". Functions that take an embedding, such as coret.candidates, need none.',
                  ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END $$;
COMMENT ON FUNCTION coret.check_call(text, integer, real, float8) IS 'Raise an error for a question that can''t be asked, or that nobody would answer.';

CREATE OR REPLACE FUNCTION coret.submit(question text, k integer DEFAULT NULL, tau real DEFAULT NULL, timeout_s float8 DEFAULT 60) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    new_id bigint;
BEGIN
    PERFORM coret.check_call(question, k, tau, timeout_s);
    INSERT INTO coret.request AS r (question, k, tau, deadline)
    VALUES (submit.question, submit.k, submit.tau, clock_timestamp() + make_interval(secs => timeout_s))
    RETURNING r.request_id INTO new_id;
    PERFORM pg_notify('coret_request', '');
    RETURN new_id;
END $$;
COMMENT ON FUNCTION coret.submit(text, integer, real, float8) IS
    'Leave a question for a worker, and return its id for coret.fetch. It is asked when this transaction commits.';

CREATE OR REPLACE FUNCTION coret.answer_of(of_request bigint) RETURNS jsonb
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
    asked coret.request;
BEGIN
    SELECT * INTO asked FROM coret.request AS r WHERE r.request_id = of_request;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'coret: there is no request % of yours', of_request
            USING HINT = 'coret.submit returns its id; an answer that nobody fetches is dropped after a day.', ERRCODE = 'no_data_found';
    ELSIF asked.state = 'failed' THEN
        RAISE EXCEPTION 'coret: %', asked.problem USING HINT = asked.remedy, ERRCODE = 'external_routine_exception';
    ELSIF asked.state = 'cancelled' OR asked.state <> 'answered' AND asked.deadline < clock_timestamp() THEN
        RAISE EXCEPTION 'coret: no answer to request % within its time', of_request
            USING HINT = 'Ask again with a longer timeout_s, or start more workers ("coret worker").', ERRCODE = 'query_canceled';
    END IF;
    RETURN asked.answer;
END $$;
COMMENT ON FUNCTION coret.answer_of(bigint) IS 'The answer to a request of one''s own; NULL while it is waited for, an error where it failed.';

CREATE OR REPLACE FUNCTION coret.answer_tables(answer jsonb)
RETURNS TABLE (table_name text, relation regclass, role text, relevance real, partner text, own_columns text[], partner_columns text[],
               confidence real, reason text, path text, retrieval_id bigint)
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    SELECT n.table_name, to_regclass(n.table_name), t.role, t.relevance, coret.qualified_name(t.partner_schema, t.partner_table),
           t.own_columns, t.partner_columns, t.confidence, t.reason, answer ->> 'path', (answer ->> 'retrieval_id')::bigint
    FROM jsonb_to_recordset(answer -> 'tables') AS t(rank integer, schema_name text, table_name text, role text, relevance real,
        partner_schema text, partner_table text, own_columns text[], partner_columns text[], confidence real, reason text)
    CROSS JOIN LATERAL (SELECT coret.qualified_name(t.schema_name, t.table_name) AS table_name) AS n
    ORDER BY t.rank;
END;
COMMENT ON FUNCTION coret.answer_tables(jsonb) IS 'The tables of a worker''s answer, a row each.';

CREATE OR REPLACE FUNCTION coret.fetch(request_id bigint)
RETURNS TABLE (table_name text, relation regclass, role text, relevance real, partner text, own_columns text[], partner_columns text[],
               confidence real, reason text, path text, retrieval_id bigint)
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    SELECT a.* FROM coret.answer_tables(coret.answer_of(request_id)) AS a;
END;
COMMENT ON FUNCTION coret.fetch(bigint) IS
    'The tables that answer a question left by coret.submit, as coret.retrieve returns them. No rows while it is waited for (coret.request tells its state), or where no table fits.';

CREATE OR REPLACE PROCEDURE coret.retrieve_call(
    question text, k integer DEFAULT NULL, tau real DEFAULT NULL, timeout_s float8 DEFAULT 60, INOUT request_id bigint DEFAULT NULL, INOUT answer jsonb DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
    asked constant timestamptz := clock_timestamp();
BEGIN
    request_id := coret.submit(question, k, tau, timeout_s);
    COMMIT;
    LOOP
        answer := coret.answer_of(request_id);
        EXIT WHEN answer IS NOT NULL;
        IF NOT EXISTS (SELECT FROM coret.worker) THEN
            RAISE EXCEPTION 'coret: the worker has stopped' USING HINT = 'Start one: "coret worker"; then ask again.', ERRCODE = 'object_not_in_prerequisite_state';
        END IF;
        -- A transaction a look: under REPEATABLE READ too each sees what is new.
        COMMIT;
        PERFORM pg_sleep(coret.pause_s(asked));
    END LOOP;
END $$;
COMMENT ON PROCEDURE coret.retrieve_call(text, integer, real, float8, bigint, jsonb) IS
    'Ask a question and wait for its answer where the extension dblink is missing: the answer as JSON, and the id of the request for coret.fetch. It commits, so it is called outside a transaction.';

CREATE OR REPLACE FUNCTION coret.pause_s(waiting_since timestamptz) RETURNS float8
LANGUAGE sql VOLATILE
-- Short after a short wait, never long. Seconds, not times, are subtracted: before Postgres 17 infinity less a time is an error.
RETURN greatest(0.001, least(0.02, (extract(epoch FROM clock_timestamp()) - extract(epoch FROM waiting_since)) / 50));
COMMENT ON FUNCTION coret.pause_s(timestamptz) IS 'Seconds to wait before looking for an answer again.';

CREATE OR REPLACE FUNCTION coret.conninfo(option text, value text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
RETURN format(' %s=''%s''', option, replace(replace(value, '\', '\\'), '''', '\'''));
COMMENT ON FUNCTION coret.conninfo(text, text) IS 'One option of a connection string, its value quoted as libpq wants it.';

CREATE OR REPLACE FUNCTION coret.own_conninfo() RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    named text;
    socket text;
BEGIN
    SELECT string_agg(coret.conninfo(o.option_name, o.option_value), '') INTO named
    FROM pg_foreign_server AS s
    JOIN pg_user_mappings AS m ON m.srvid = s.oid AND m.usename = current_user
    CROSS JOIN LATERAL (SELECT * FROM pg_options_to_table(s.srvoptions) UNION ALL SELECT * FROM pg_options_to_table(m.umoptions)) AS o
    WHERE s.srvname = 'coret_loopback';
    IF named IS NULL THEN
        -- The local socket, which lets the owner of the schema in where it is trusted (peer, trust).
        IF pg_has_role(current_user, 'pg_read_all_settings', 'USAGE') THEN
            socket := nullif(btrim(split_part(current_setting('unix_socket_directories'), ',', 1), ' "'), '');
        END IF;
        named := coret.conninfo('port', current_setting('port')) || coret.conninfo('dbname', current_database())
                 || coret.conninfo('user', current_user) || coalesce(coret.conninfo('host', socket), '');
    END IF;
    RETURN named || coret.conninfo('application_name', 'coret_call') || coret.conninfo('options', '-c synchronous_commit=off');
END $$;
COMMENT ON FUNCTION coret.own_conninfo() IS
    'How the server reaches itself for a second session: by the foreign server coret_loopback and its user mapping for the owner of the schema, else by the local socket.';

CREATE OR REPLACE FUNCTION coret.elsewhere(statement text) RETURNS jsonb
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
    dblink_schema text := (SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'dblink');
    result jsonb;
    said text;
BEGIN
    IF dblink_schema IS NULL THEN
        RAISE EXCEPTION 'coret: the extension dblink is missing'
            USING HINT = 'Let a superuser run: CREATE EXTENSION dblink; or use CALL coret.retrieve_call(...), or coret.submit and coret.fetch.',
                  ERRCODE = 'undefined_object';
    END IF;
    -- Opened and closed within: a connection that stayed open could be used by whatever else runs in
    -- the caller's session, with the rights of our owner.
    EXECUTE format('SELECT d.result::jsonb FROM %s.dblink($1, $2) AS d(result text)', dblink_schema) INTO result
    USING coret.own_conninfo(), statement;
    RETURN result;
EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection OR prohibited_sql_statement_attempted THEN
    GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION 'coret: the server cannot reach itself for a second session'
        USING DETAIL = said, HINT = 'Let an administrator make the server coret_loopback and its user mapping (docs/how-to/call-from-sql.md).', ERRCODE = 'sqlclient_unable_to_establish_sqlconnection';
END $$;
COMMENT ON FUNCTION coret.elsewhere(text) IS 'Run a statement in a second session, which commits for itself, and return its one value.';

CREATE OR REPLACE FUNCTION coret.ask_worker(seal text, question text, k integer, tau real, timeout_s float8) RETURNS jsonb
LANGUAGE plpgsql VOLATILE
-- The caller may be in a read-only transaction, and may not open sessions: its owner does.
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    asker constant text := coret.sealed_role(seal);
    asked constant timestamptz := clock_timestamp();
    -- Held until this statement ends, however it does: a worker sees by it that somebody still waits.
    waiter constant bigint := hashtextextended(gen_random_uuid()::text, 0);
    request_id bigint;
    answer jsonb;
    looked timestamptz := asked;
BEGIN
    PERFORM coret.check_call(question, k, tau, timeout_s);
    PERFORM pg_advisory_xact_lock(waiter);
    request_id := coret.elsewhere(format(
        'WITH asked AS (INSERT INTO coret.request (question, k, tau, asked_by, deadline, waiter)
                        VALUES (%L, %L, %L, %L, clock_timestamp() + make_interval(secs => %s), %s) RETURNING request_id)
         SELECT request_id FROM asked, pg_notify(''coret_request'', '''')', question, k, tau, asker, timeout_s, waiter))::bigint;
    LOOP
        IF current_setting('transaction_isolation') = 'read committed' THEN
            answer := coret.answer_of(request_id);
            EXIT WHEN answer IS NOT NULL;
            PERFORM pg_sleep(coret.pause_s(asked));
        ELSE
            -- This transaction's snapshot is older than the answer: a new session looks.
            answer := coret.elsewhere(format('SELECT coret.await_answer(%s, 1)', request_id));
            EXIT WHEN answer IS NOT NULL;
        END IF;
        IF clock_timestamp() > looked + interval '0.25 s' THEN
            looked := clock_timestamp();
            IF NOT EXISTS (SELECT FROM coret.worker) THEN
                RAISE EXCEPTION 'coret: the worker has stopped' USING HINT = 'Start one: "coret worker"; then ask again.', ERRCODE = 'object_not_in_prerequisite_state';
            END IF;
        END IF;
    END LOOP;
    RETURN answer;
END $$;
COMMENT ON FUNCTION coret.ask_worker(text, text, integer, real, float8) IS
    'Have a worker answer a question with the rights of the role that the seal (coret.seal) is made for, and wait for it; the answer as JSON. Needs the extension dblink.';

CREATE OR REPLACE FUNCTION coret.await_answer(of_request bigint, most_s float8) RETURNS jsonb
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
    since constant timestamptz := clock_timestamp();
    answer jsonb;
BEGIN
    LOOP
        answer := coret.answer_of(of_request);
        IF answer IS NOT NULL OR clock_timestamp() > since + make_interval(secs => most_s) THEN
            RETURN answer;
        END IF;
        PERFORM pg_sleep(coret.pause_s(since));
    END LOOP;
END $$;
COMMENT ON FUNCTION coret.await_answer(bigint, float8) IS 'Wait at most so many seconds for the answer to a request; NULL where it is still waited for.';

CREATE OR REPLACE FUNCTION coret.retrieve(question text, k integer DEFAULT NULL, tau real DEFAULT NULL, timeout_s float8 DEFAULT 60)
RETURNS TABLE (table_name text, relation regclass, role text, relevance real, partner text, own_columns text[], partner_columns text[],
               confidence real, reason text, path text, retrieval_id bigint)
LANGUAGE sql VOLATILE
BEGIN ATOMIC
    SELECT a.* FROM coret.answer_tables(coret.ask_worker((SELECT s.seal FROM coret.seal AS s), question, k, tau, timeout_s)) AS a;
END;
COMMENT ON FUNCTION coret.retrieve(text, integer, real, float8) IS
    'The small, joinable set of tables that answers a question in plain words, of those the caller may SELECT: each with its role (selected, added by compatibility, added by expansion, bridge), the table it joins and by which columns, and why. No rows where no table fits. k: candidates looked at; tau: the score above which a partner is added; timeout_s: seconds to wait. Needs a worker (coret worker) and dblink.';

CREATE OR REPLACE FUNCTION coret.schema_slice(question text, k integer DEFAULT NULL, tau real DEFAULT NULL, timeout_s float8 DEFAULT 60) RETURNS text
LANGUAGE sql VOLATILE
BEGIN ATOMIC
    SELECT coret.ask_worker((SELECT s.seal FROM coret.seal AS s), question, k, tau, timeout_s) ->> 'schema_slice';
END;
COMMENT ON FUNCTION coret.schema_slice(text, integer, real, float8) IS
    'The answer of coret.retrieve as text for whoever writes the SQL: CREATE TABLE statements with purposes, comments and examples of values, and the joins; only columns the caller may SELECT. Empty where no table fits.';
