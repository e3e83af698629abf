-- What of the values is kept, and what is shown to models: by coret.sample_policy and coret.deny_pattern.

CREATE OR REPLACE VIEW coret.column_policy WITH (security_invoker) AS
    SELECT c.column_id, c.table_id, coalesce(p.column_level, CASE WHEN d.is_denied THEN 'names' ELSE p.level END) AS level
    FROM coret.catalog_column AS c
    JOIN coret.catalog_table AS t USING (table_id)
    JOIN coret.source AS s USING (source_id)
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM coret.deny_pattern AS x
                       WHERE x.matches = 'column name'
                         -- Also in customerPhone, where the pattern looks for a word.
                         AND (c.column_name ~* x.pattern OR regexp_replace(c.column_name, '([[:lower:][:digit:]])([[:upper:]])', '\1_\2', 'g') ~* x.pattern)) AS is_denied
    ) AS d
    CROSS JOIN LATERAL (
        -- The narrowest rule; one for this very column also wins over the deny-list.
        SELECT (array_agg(r.level ORDER BY r.column_name IS NULL, r.table_name IS NULL, r.schema_name IS NULL, r.source_name IS NULL))[1] AS level,
               max(r.level) FILTER (WHERE r.column_name IS NOT NULL) AS column_level
        FROM coret.sample_policy AS r
        WHERE coalesce(r.source_name, s.source_name) = s.source_name AND coalesce(r.schema_name, t.schema_name) = t.schema_name
          AND coalesce(r.table_name, t.table_name) = t.table_name AND coalesce(r.column_name, c.column_name) = c.column_name
    ) AS p;
COMMENT ON VIEW coret.column_policy IS 'The level that policies and the deny-list give each column; NULL where none names it. coret.catalog_column.sample_level is this, as last applied.';

CREATE OR REPLACE FUNCTION coret.masked(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(value, 40), '[^\x01-\x7f]', 'x', 'g'), '[a-z]', 'x', 'g'), '[A-Z]', 'X', 'g'), '[0-9]', '9', 'g');
COMMENT ON FUNCTION coret.masked(text) IS 'The form of a value without its content: letters become x or X, digits 9, other signs stay; at most 40 characters.';

CREATE OR REPLACE FUNCTION coret.without_secrets(value text) RETURNS text
LANGUAGE sql STABLE STRICT
RETURN CASE WHEN EXISTS (SELECT FROM coret.deny_pattern AS x WHERE x.matches = 'value' AND value ~* x.pattern) THEN coret.masked(value) ELSE value END;
COMMENT ON FUNCTION coret.without_secrets(text) IS 'A value as it may be kept: masked where it matches coret.deny_pattern.';

CREATE OR REPLACE FUNCTION coret.values_without_secrets(given text[]) RETURNS text[]
LANGUAGE sql STABLE STRICT
RETURN (SELECT coalesce(array_agg(coret.without_secrets(v.value) ORDER BY v.place), '{}') FROM unnest(given) WITH ORDINALITY AS v(value, place));
COMMENT ON FUNCTION coret.values_without_secrets(text[]) IS 'Values as they may be kept: each masked where it matches coret.deny_pattern.';

CREATE OR REPLACE FUNCTION coret.shown_level(sample_level text, is_remote boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(sample_level, CASE WHEN is_remote THEN 'masked' ELSE 'samples' END);
COMMENT ON FUNCTION coret.shown_level(text, boolean) IS 'The level at which a column''s values are shown: as its policy says; where it has none as they are, but masked to an endpoint on another host.';

CREATE OR REPLACE FUNCTION coret.shown_values(given text[], sample_level text, is_remote boolean DEFAULT false) RETURNS text[]
LANGUAGE sql IMMUTABLE
RETURN CASE coret.shown_level(sample_level, is_remote)
           WHEN 'samples' THEN given
           WHEN 'masked' THEN (SELECT array_agg(coret.masked(v.value) ORDER BY v.place) FROM unnest(given) WITH ORDINALITY AS v(value, place))
           ELSE '{}'::text[] END;
COMMENT ON FUNCTION coret.shown_values(text[], text, boolean) IS 'A column''s values as its level lets them be shown; none at "names" and "statistics".';

CREATE OR REPLACE FUNCTION coret.markdown_cell(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(replace(btrim(regexp_replace(coalesce(value, 'NULL'), '\s+', ' ', 'g')), '|', '\|'), '^(.{59}).{2,}$', '\1…');
COMMENT ON FUNCTION coret.markdown_cell(text) IS 'A value as a cell of a Markdown table: on one line, cut at 60 characters; NULL as a word.';

CREATE OR REPLACE FUNCTION coret.snapshot_markdown(of_table bigint, is_remote boolean DEFAULT false) RETURNS text
-- In PL/pgSQL, which keeps its plan: planning took longer than ten tables' rows.
LANGUAGE plpgsql STABLE STRICT
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
BEGIN
    RETURN (
    WITH shown AS MATERIALIZED (
        SELECT c.attnum, c.column_name, coalesce(coret.shown_values(s.sampled_values, c.sample_level, is_remote), '{}') AS cells
        FROM coret.catalog_column AS c LEFT JOIN coret.column_sample AS s USING (column_id)
        WHERE c.table_id = of_table
    ),
    line AS (
        SELECT -1 AS place, '| ' || string_agg(coret.markdown_cell(s.column_name), ' | ' ORDER BY s.attnum) || ' |' AS text FROM shown AS s
        UNION ALL
        SELECT 0, '|' || string_agg(' --- |', '') FROM shown
        UNION ALL
        -- A column whose values aren't shown has blank cells.
        SELECT n.place, '| ' || string_agg(CASE WHEN n.place <= cardinality(s.cells) THEN coret.markdown_cell(s.cells[n.place]) ELSE '' END, ' | ' ORDER BY s.attnum) || ' |'
        FROM generate_series(1, (SELECT max(cardinality(x.cells)) FROM shown AS x)) AS n(place) CROSS JOIN shown AS s
        GROUP BY n.place
    )
    SELECT string_agg(l.text, E'\n' ORDER BY l.place) FROM line AS l);
END $$;
COMMENT ON FUNCTION coret.snapshot_markdown(bigint, boolean) IS
    'The sampled rows of a table as a Markdown table: those columns the reader may read, those values the policies let be shown (is_remote: to an endpoint on another host).';

CREATE OR REPLACE FUNCTION coret.shown_purpose(of_table bigint, is_remote boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql STABLE STRICT
SET plan_cache_mode = force_generic_plan
SET jit = off
AS $$
BEGIN
    RETURN (SELECT p.purpose FROM coret.purpose AS p
        WHERE p.table_id = of_table
          -- Written from values as they are, it may quote some that leave this host masked only.
          AND NOT (is_remote AND p.saw_samples AND EXISTS (SELECT FROM coret.catalog_column AS c WHERE c.table_id = of_table AND c.sample_level IS NULL)));
END $$;
COMMENT ON FUNCTION coret.shown_purpose(bigint, boolean) IS 'A table''s purpose as the policies let it be shown; NULL where a model wrote it from values that may not leave.';

CREATE OR REPLACE FUNCTION coret.purpose_payload(of_table bigint, is_remote boolean DEFAULT true) RETURNS text
LANGUAGE sql STABLE STRICT
RETURN (SELECT concat_ws(E'\n', t.table_comment,
                         (SELECT string_agg(c.column_name || ': ' || c.column_comment, E'\n' ORDER BY c.attnum)
                          FROM coret.catalog_column AS c WHERE c.table_id = of_table AND c.column_comment <> ''),
                         'Table: ' || coret.markdown_cell(t.table_name), coret.snapshot_markdown(of_table, is_remote))
        FROM coret.catalog_table AS t WHERE t.table_id = of_table);
COMMENT ON FUNCTION coret.purpose_payload(bigint, boolean) IS 'What a chat model is told of a table when it is asked for its purpose, besides the instructions.';

CREATE OR REPLACE FUNCTION coret.selection_payload(of_table bigint, label text, is_remote boolean DEFAULT true) RETURNS text
LANGUAGE sql STABLE STRICT
RETURN concat_ws(E'\n', '### ' || label, coret.shown_purpose(of_table, is_remote), coret.snapshot_markdown(of_table, is_remote));
COMMENT ON FUNCTION coret.selection_payload(bigint, text, boolean) IS 'What a chat model is told of a candidate when it selects tables, besides instructions, joins and the question.';

CREATE OR REPLACE FUNCTION coret.preview_payload(name text, is_remote boolean DEFAULT true) RETURNS TABLE (use text, payload text)
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    SELECT u.use, u.payload
    FROM coret.catalog_table AS t
    CROSS JOIN LATERAL (VALUES ('purpose', coret.purpose_payload(t.table_id, is_remote)),
                               ('selection', coret.selection_payload(t.table_id, t.table_name, is_remote))) AS u(use, payload)
    WHERE t.table_id = coret.table_named(name);
END;
COMMENT ON FUNCTION coret.preview_payload(text, boolean) IS
    'Exactly what of a table would leave the database in prompts, for each use of a chat model: to an endpoint on another host, or (is_remote => false) on this one.';

CREATE OR REPLACE FUNCTION coret.apply_sample_policies() RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    changed_columns bigint[];
    changed_tables bigint[];
BEGIN
    WITH changed AS (
        UPDATE coret.catalog_column AS c SET sample_level = p.level
        FROM coret.column_policy AS p
        WHERE p.column_id = c.column_id AND c.sample_level IS DISTINCT FROM p.level
        RETURNING c.column_id, c.table_id
    )
    SELECT array_agg(column_id), array_agg(DISTINCT table_id) INTO changed_columns, changed_tables FROM changed;
    PERFORM coret.forget_values(changed_columns);
    -- What may be kept again is read again; what a model wrote of other values is written anew.
    DELETE FROM coret.table_step AS s WHERE s.table_id = ANY (changed_tables) AND s.step IN ('snapshot', 'profile', 'purpose');
    DELETE FROM coret.purpose AS p WHERE p.table_id = ANY (changed_tables) AND p.made_by <> 'person';
    RETURN coalesce(cardinality(changed_columns), 0);
END $$;
COMMENT ON FUNCTION coret.apply_sample_policies() IS
    'Work out each column''s level anew, drop at once what may no longer be kept, and let the next refresh read what may be. Returns how many columns have another level than before.';

CREATE OR REPLACE FUNCTION coret.forget_values(of_columns bigint[]) RETURNS void
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    DELETE FROM coret.column_sample AS s USING coret.catalog_column AS c
    WHERE s.column_id = ANY (of_columns) AND c.column_id = s.column_id AND c.sample_level IN ('names', 'statistics');
    DELETE FROM coret.column_phrases AS f USING coret.catalog_column AS c
    WHERE f.column_id = ANY (of_columns) AND c.column_id = f.column_id AND c.sample_level IN ('names', 'statistics');
    UPDATE coret.column_profile AS p
    SET frequent_values = '{}',
        min_value = CASE WHEN c.sample_level = 'statistics' AND c.type_family <> 'text' THEN p.min_value END,
        max_value = CASE WHEN c.sample_level = 'statistics' AND c.type_family <> 'text' THEN p.max_value END
    FROM coret.catalog_column AS c
    WHERE p.column_id = ANY (of_columns) AND c.column_id = p.column_id AND c.sample_level IN ('names', 'statistics');
    UPDATE coret.column_sample AS s SET sampled_values = coret.values_without_secrets(s.sampled_values) WHERE s.column_id = ANY (of_columns);
    UPDATE coret.column_profile AS p
    SET frequent_values = coret.values_without_secrets(p.frequent_values),
        min_value = coret.without_secrets(p.min_value), max_value = coret.without_secrets(p.max_value)
    WHERE p.column_id = ANY (of_columns);
END;
COMMENT ON FUNCTION coret.forget_values(bigint[]) IS 'Drop, or mask, what is stored of some columns'' values and may not be kept (their level, coret.deny_pattern).';

CREATE OR REPLACE FUNCTION coret.set_sample_policy(
    level text, schema_name text DEFAULT NULL, table_name text DEFAULT NULL, column_name text DEFAULT NULL, source_name text DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
BEGIN
    IF level NOT IN ('names', 'statistics', 'masked', 'samples', 'default') OR level IS NULL THEN
        RAISE EXCEPTION 'coret: "%" is no level of a sample policy', level
            USING HINT = 'Say names, statistics, masked, samples, or default to take a rule away.', ERRCODE = 'invalid_parameter_value';
    ELSIF schema_name IS NULL AND table_name IS NOT NULL OR table_name IS NULL AND column_name IS NOT NULL THEN
        RAISE EXCEPTION 'coret: a policy for a % needs the % too', CASE WHEN column_name IS NULL THEN 'table' ELSE 'column' END,
            CASE WHEN table_name IS NULL THEN 'table' ELSE 'schema' END
            USING HINT = 'Name schema_name, table_name and column_name, from the left.', ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM coret.sample_policy AS p
    WHERE (p.source_name, p.schema_name, p.table_name, p.column_name) IS NOT DISTINCT FROM (source_name, schema_name, table_name, column_name);
    IF level <> 'default' THEN
        INSERT INTO coret.sample_policy (source_name, schema_name, table_name, column_name, level)
        VALUES (source_name, schema_name, table_name, column_name, level);
    END IF;
    RETURN coret.apply_sample_policies();
END $$;
COMMENT ON FUNCTION coret.set_sample_policy(text, text, text, text, text) IS
    'Say how much of the values of a source, schema, table or column may be kept and shown: names, statistics, masked or samples; default takes the rule away. Takes effect at once. Returns how many columns changed their level.';

CREATE OR REPLACE FUNCTION coret.deny(pattern text, matches text DEFAULT 'column name') RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $$
#variable_conflict use_variable
BEGIN
    BEGIN
        PERFORM '' ~* pattern;
    EXCEPTION WHEN invalid_regular_expression THEN
        RAISE EXCEPTION 'coret: "%" is no regular expression', pattern
            USING HINT = 'See "POSIX regular expressions" in the manual of Postgres.', ERRCODE = 'invalid_regular_expression';
    END;
    IF matches NOT IN ('column name', 'value') OR pattern = '' THEN
        RAISE EXCEPTION 'coret: a pattern "%" for "%" can''t be denied', pattern, matches
            USING HINT = 'Give a pattern, for "column name" or for "value".', ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO coret.deny_pattern AS d (pattern, matches) VALUES (pattern, matches) ON CONFLICT ON CONSTRAINT deny_pattern_pkey DO NOTHING;
    IF matches = 'value' THEN
        PERFORM coret.forget_values((SELECT array_agg(c.column_id) FROM coret.catalog_column AS c));
    END IF;
    RETURN coret.apply_sample_policies();
END $$;
COMMENT ON FUNCTION coret.deny(text, text) IS
    'Add a regular expression to the deny-list: for column names, whose values are then neither kept nor shown, or for values, which are then masked. Takes effect at once. Returns how many columns changed their level.';

CREATE OR REPLACE FUNCTION coret.undeny(pattern text, matches text DEFAULT 'column name') RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $$
#variable_conflict use_variable
BEGIN
    DELETE FROM coret.deny_pattern AS d WHERE d.pattern = pattern AND d.matches = matches;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'coret: "%" is not on the deny-list for "%"', pattern, matches
            USING HINT = 'coret.deny_pattern lists what is.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coret.apply_sample_policies();
END $$;
COMMENT ON FUNCTION coret.undeny(text, text) IS
    'Take a regular expression off the deny-list; the next refresh reads what may be kept again. Returns how many columns changed their level.';
