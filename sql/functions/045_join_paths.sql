-- Joins as people ask for them: by the names of tables, with a confidence, and their verdicts.

CREATE OR REPLACE FUNCTION coret.table_named(name text) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    parts text[];
    found bigint[];
    names text;
BEGIN
    BEGIN
        parts := parse_ident(name);
    EXCEPTION WHEN invalid_parameter_value THEN
        parts := string_to_array(name, '.');
    END;
    SELECT array_agg(t.table_id), string_agg(coret.qualified_name(t.schema_name, t.table_name), ', ' ORDER BY t.schema_name)
    INTO found, names FROM coret.catalog_table AS t
    WHERE CASE cardinality(parts) WHEN 1 THEN t.table_name = parts[1]
                                  WHEN 2 THEN t.schema_name = parts[1] AND t.table_name = parts[2] END
       -- As it is written, where SQL would fold or split it.
       OR t.schema_name || '.' || t.table_name = name OR t.table_name = name;
    IF cardinality(found) = 1 THEN
        RETURN found[1];
    ELSIF found IS NULL THEN
        RAISE EXCEPTION 'coret: no table "%" is in the pool', name
            USING HINT = 'Name it as schema.table; coret.catalog_table lists what the last refresh found.', ERRCODE = 'undefined_table';
    END IF;
    RAISE EXCEPTION 'coret: "%" could be any of %', name, names
        USING HINT = 'Name it as schema.table.', ERRCODE = 'ambiguous_alias';
END $$;
COMMENT ON FUNCTION coret.table_named(text) IS
    'The id of a table of the pool by its name: schema.table, or the table alone where there is one of that name.';

CREATE OR REPLACE FUNCTION coret.column_names(column_ids bigint[]) RETURNS text[]
LANGUAGE sql STABLE STRICT
RETURN (SELECT array_agg(c.column_name ORDER BY n.place)
        FROM unnest(column_ids) WITH ORDINALITY AS n(column_id, place) JOIN coret.catalog_column AS c USING (column_id));
COMMENT ON FUNCTION coret.column_names(bigint[]) IS 'Names of columns by their ids, in the order given.';

CREATE OR REPLACE FUNCTION coret.join_reasons(of_edge bigint) RETURNS text[]
LANGUAGE sql STABLE STRICT
RETURN (
    SELECT array_remove(ARRAY[
        CASE e.evidence WHEN 'declared' THEN 'declared as a foreign key' WHEN 'confirmed' THEN 'accepted by a person' END,
        CASE WHEN e.name_fit = 1 THEN 'the names fit' WHEN e.name_fit >= 0.8 THEN 'the names fit roughly'
             WHEN e.name_fit > 0 THEN 'the names are related' ELSE 'the names say nothing' END,
        CASE WHEN e.included IS NULL THEN 'no values to compare' WHEN e.included = 1 THEN 'all values are the parent''s'
             ELSE format('%s%% of the values are the parent''s', round((v.included * 100)::numeric, 1)) END,
        -- Known of single columns only.
        CASE WHEN v.covered > 0 AND cardinality(e.child_columns) = 1 THEN format('they cover %s%% of the parent''s', round((v.covered * 100)::numeric, 1)) END,
        CASE WHEN v.child_is_key THEN 'the child column is its table''s own key' END,
        CASE WHEN e.evidence = 'inferred' AND e.equals > 0 THEN format('%s other parents fit as well', e.equals) END,
        CASE WHEN e.evidence = 'inferred' AND e.betters > 0 THEN format('%s other parents fit better', e.betters) END,
        CASE WHEN e.evidence = 'inferred' AND e.rivals > 0 THEN format('%s other tables of the child''s name fit this parent', e.rivals) END
    ], NULL)
    FROM coret.join_edge AS e JOIN coret.join_evidence AS v USING (edge_id) WHERE e.edge_id = of_edge);
COMMENT ON FUNCTION coret.join_reasons(bigint) IS 'What the confidence of a possible join rests on, in words.';

CREATE OR REPLACE VIEW coret.join_edge_both WITH (security_invoker) AS
    SELECT e.edge_id, e.child_table AS from_table, e.parent_table AS to_table, e.child_columns AS from_columns,
           e.parent_columns AS to_columns, e.cardinality, e.confidence, e.evidence
    FROM coret.join_edge AS e
    UNION ALL
    SELECT e.edge_id, e.parent_table, e.child_table, e.parent_columns, e.child_columns,
           CASE e.cardinality WHEN 'N:1' THEN '1:N' ELSE e.cardinality END, e.confidence, e.evidence
    FROM coret.join_edge AS e;
COMMENT ON VIEW coret.join_edge_both IS 'coret.join_edge seen from either table.';

CREATE OR REPLACE FUNCTION coret.compatible(name text, min_confidence real DEFAULT 0.2)
RETURNS TABLE (other_table text, own_columns text[], other_columns text[], cardinality text, confidence real, evidence text, reasons text[])
LANGUAGE sql STABLE STRICT
BEGIN ATOMIC
    -- Of two columns with the same values each may be the other's parent: the surer direction is shown.
    SELECT j.other_table, j.own_columns, j.other_columns, j.cardinality, j.confidence, j.evidence, coret.join_reasons(j.edge_id)
    FROM (
        SELECT DISTINCT ON (e.to_table, n.own_columns, n.other_columns)
               coret.qualified_name(t.schema_name, t.table_name) AS other_table, n.own_columns, n.other_columns,
               e.cardinality, e.confidence, e.evidence, e.edge_id
        FROM coret.join_edge_both AS e
        JOIN coret.catalog_table AS t ON t.table_id = e.to_table
        CROSS JOIN LATERAL (SELECT coret.column_names(e.from_columns) AS own_columns, coret.column_names(e.to_columns) AS other_columns) AS n
        WHERE e.from_table = (SELECT coret.table_named(name)) AND e.confidence >= min_confidence
        ORDER BY e.to_table, n.own_columns, n.other_columns, e.confidence DESC, e.edge_id
    ) AS j
    ORDER BY j.confidence DESC, j.other_table, j.own_columns;
END;
COMMENT ON FUNCTION coret.compatible(text, real) IS
    'The joins of a table, surest first: the other table, the columns of both, the cardinality read from the table asked for, and what the confidence rests on.';

CREATE OR REPLACE FUNCTION coret.join_path(from_table text, to_table text, max_hops integer DEFAULT 4, min_confidence real DEFAULT 0.05)
RETURNS TABLE (hop integer, left_table text, left_columns text[], right_table text, right_columns text[], cardinality text, confidence real, evidence text)
LANGUAGE plpgsql STABLE STRICT
ROWS 4 AS $$
DECLARE
    start_id bigint := coret.table_named(from_table);
    end_id bigint := coret.table_named(to_table);
    -- The surest way found so far to each table: its cost, and its joins as 'edge,edge'.
    tables bigint[] := ARRAY[start_id];
    costs float8[] := ARRAY[0];
    ways text[] := ARRAY[''];
BEGIN
    IF max_hops NOT BETWEEN 1 AND 4 THEN
        RAISE EXCEPTION 'coret: max_hops is %', max_hops
            USING HINT = 'Ask for a path of 1 to 4 joins.', ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Bellman-Ford: after n rounds every table within n joins has its surest way of at most n.
    FOR i IN 1..max_hops LOOP
        SELECT array_agg(n.table_id ORDER BY n.table_id), array_agg(n.cost ORDER BY n.table_id), array_agg(n.way ORDER BY n.table_id)
        INTO tables, costs, ways
        FROM (
            SELECT DISTINCT ON (x.table_id) x.table_id, x.cost, x.way
            FROM (
                SELECT k.table_id, k.cost, k.way FROM unnest(tables, costs, ways) AS k(table_id, cost, way)
                UNION ALL
                -- A sure join costs a little too: of equally sure ways the shorter.
                SELECT e.to_table, k.cost - ln(e.confidence) + 0.01, concat_ws(',', nullif(k.way, ''), e.edge_id)
                FROM unnest(tables, costs, ways) AS k(table_id, cost, way)
                JOIN coret.join_edge_both AS e ON e.from_table = k.table_id
                WHERE e.confidence >= greatest(min_confidence, 0.0001)
            ) AS x
            ORDER BY x.table_id, x.cost, x.way
        ) AS n;
    END LOOP;
    RETURN QUERY
        WITH RECURSIVE walked AS (
            SELECT 1 AS hop, start_id AS at_table, string_to_array(k.way, ',')::bigint[] AS edges
            FROM unnest(tables, ways) AS k(table_id, way) WHERE k.table_id = end_id AND k.way <> ''
            UNION ALL
            SELECT w.hop + 1, e.to_table, w.edges
            FROM walked AS w JOIN coret.join_edge_both AS e ON e.edge_id = w.edges[w.hop] AND e.from_table = w.at_table
            WHERE w.hop < cardinality(w.edges)
        )
        SELECT w.hop, coret.qualified_name(l.schema_name, l.table_name), coret.column_names(e.from_columns),
               coret.qualified_name(r.schema_name, r.table_name), coret.column_names(e.to_columns), e.cardinality, e.confidence, e.evidence
        FROM walked AS w
        JOIN coret.join_edge_both AS e ON e.edge_id = w.edges[w.hop] AND e.from_table = w.at_table
        JOIN coret.catalog_table AS l ON l.table_id = e.from_table
        JOIN coret.catalog_table AS r ON r.table_id = e.to_table
        ORDER BY w.hop;
END $$;
COMMENT ON FUNCTION coret.join_path(text, text, integer, real) IS
    'The surest way to join two tables: at most max_hops joins, the product of whose confidences is the largest. A row a join, in order; none where there is no way, or both are the same table.';

CREATE OR REPLACE FUNCTION coret.decide_join(left_name text, left_columns text[], right_name text, right_columns text[], verdict text)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT AS $$
#variable_conflict use_column
DECLARE
    l coret.catalog_table;
    r coret.catalog_table;
    missing text;
    own text[];
    others text[];
BEGIN
    SELECT * INTO l FROM coret.catalog_table AS t WHERE t.table_id = coret.table_named(left_name);
    SELECT * INTO r FROM coret.catalog_table AS t WHERE t.table_id = coret.table_named(right_name);
    IF verdict NOT IN ('accepted', 'rejected', 'undecided') THEN
        RAISE EXCEPTION 'coret: "%" is no verdict', verdict
            USING HINT = 'Say accepted, rejected or undecided.', ERRCODE = 'invalid_parameter_value';
    ELSIF l.table_id = r.table_id THEN
        RAISE EXCEPTION 'coret: % joined with itself', coret.qualified_name(l.schema_name, l.table_name)
            USING HINT = 'Name two tables.', ERRCODE = 'invalid_parameter_value';
    ELSIF cardinality(left_columns) <> cardinality(right_columns) OR cardinality(left_columns) = 0 THEN
        RAISE EXCEPTION 'coret: % columns on one side of the join, % on the other', cardinality(left_columns), cardinality(right_columns)
            USING HINT = 'Name as many columns of each table, in the same order.', ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT string_agg(n.name, ', ') INTO missing
    FROM (SELECT l.table_id, unnest(left_columns) UNION ALL SELECT r.table_id, unnest(right_columns)) AS n(table_id, name)
    WHERE NOT EXISTS (SELECT FROM coret.catalog_column AS c WHERE c.table_id = n.table_id AND c.column_name = n.name);
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'coret: no column % in % or %', missing, coret.qualified_name(l.schema_name, l.table_name), coret.qualified_name(r.schema_name, r.table_name)
            USING HINT = 'Write column names as the catalog has them (coret.catalog_column).', ERRCODE = 'undefined_column';
    END IF;
    -- One order of tables and of columns, so that one join has one verdict.
    IF (l.schema_name, l.table_name) > (r.schema_name, r.table_name) THEN
        PERFORM coret.decide_join(right_name, right_columns, left_name, left_columns, verdict);
        RETURN;
    END IF;
    SELECT array_agg(n.own ORDER BY n.own, n.other), array_agg(n.other ORDER BY n.own, n.other) INTO own, others
    FROM unnest(left_columns, right_columns) AS n(own, other);
    IF verdict = 'undecided' THEN
        DELETE FROM coret.join_verdict AS v
        WHERE v.left_schema = l.schema_name AND v.left_table = l.table_name AND v.left_columns = own
          AND v.right_schema = r.schema_name AND v.right_table = r.table_name AND v.right_columns = others;
        -- What it hid or held up is found or dropped by the next refresh.
        DELETE FROM coret.table_step AS s WHERE s.table_id IN (l.table_id, r.table_id) AND s.step IN ('compatibility', 'joins');
    ELSE
        INSERT INTO coret.join_verdict AS v (left_schema, left_table, left_columns, right_schema, right_table, right_columns, verdict)
        VALUES (l.schema_name, l.table_name, own, r.schema_name, r.table_name, others, verdict)
        ON CONFLICT (left_schema, left_table, left_columns, right_schema, right_table, right_columns)
        DO UPDATE SET verdict = excluded.verdict, decided_by = current_user, decided_at = now();
        PERFORM coret.renew_certain_joins(ARRAY[l.table_id, r.table_id]);
        PERFORM coret.refresh_compatibility(ARRAY[l.table_id, r.table_id]);
    END IF;
    PERFORM coret.weigh_joins();
END $$;
COMMENT ON FUNCTION coret.decide_join(text, text[], text, text[], text) IS
    'Write a verdict on a join down and apply it: accepted, rejected, or undecided to withdraw an earlier one. See coret.accept_join, coret.reject_join, coret.forget_join.';

CREATE OR REPLACE FUNCTION coret.accept_join(left_name text, left_columns text[], right_name text, right_columns text[]) RETURNS void
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    SELECT coret.decide_join(left_name, left_columns, right_name, right_columns, 'accepted');
END;
COMMENT ON FUNCTION coret.accept_join(text, text[], text, text[]) IS
    'Say that two tables join on these columns: confidence 1 from now on, through every refresh.';

CREATE OR REPLACE FUNCTION coret.reject_join(left_name text, left_columns text[], right_name text, right_columns text[]) RETURNS void
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    SELECT coret.decide_join(left_name, left_columns, right_name, right_columns, 'rejected');
END;
COMMENT ON FUNCTION coret.reject_join(text, text[], text, text[]) IS
    'Say that two tables do not join on these columns: the pair is left out of joins and scores, through every refresh.';

CREATE OR REPLACE FUNCTION coret.forget_join(left_name text, left_columns text[], right_name text, right_columns text[]) RETURNS void
LANGUAGE sql VOLATILE STRICT
BEGIN ATOMIC
    SELECT coret.decide_join(left_name, left_columns, right_name, right_columns, 'undecided');
END;
COMMENT ON FUNCTION coret.forget_join(text, text[], text, text[]) IS
    'Withdraw a verdict on a join; the next refresh looks at it anew.';
