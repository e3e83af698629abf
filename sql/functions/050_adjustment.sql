-- Adjustment: the two additive steps after selection. Nothing selected is ever taken away.

CREATE OR REPLACE FUNCTION coret.adjust(
    candidate_ids bigint[], relevances real[], selected_ids bigint[], tau real DEFAULT 0.5, expand_single boolean DEFAULT false)
RETURNS TABLE (table_id bigint, role text, partner_id bigint, gain real)
LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    member bigint;
    best record;
    chosen bigint[] := selected_ids;
    pair_sum float8;        -- scores of all pairs inside the group
    relevance_sum float8;
    n integer;
BEGIN
    IF cardinality(candidate_ids) <> cardinality(relevances) THEN
        RAISE EXCEPTION 'coret: % candidates but % relevances', cardinality(candidate_ids), cardinality(relevances)
            USING ERRCODE = 'array_subscript_error';
    END IF;
    IF NOT selected_ids <@ candidate_ids THEN
        RAISE EXCEPTION 'coret: a selected table is not among the candidates' USING ERRCODE = 'invalid_parameter_value';
    END IF;

    -- Step 1: each selected table brings its strongest compatible candidate, if that is strong enough.
    FOREACH member IN ARRAY selected_ids LOOP
        SELECT p.other_id, p.score INTO best
        FROM coret.compatible_with(member) AS p
        WHERE p.other_id = ANY (candidate_ids)
        ORDER BY p.score DESC, p.other_id LIMIT 1;
        IF FOUND AND best.score > tau AND best.other_id <> ALL (chosen) THEN
            chosen := chosen || best.other_id;
            table_id := best.other_id; role := 'added by compatibility'; partner_id := member; gain := best.score;
            RETURN NEXT;
        END IF;
    END LOOP;

    -- Step 2: grow the group while some compatible candidate raises mean pairwise score + mean relevance.
    LOOP
        n := cardinality(chosen);
        EXIT WHEN n = 0 OR (n = 1 AND NOT expand_single);
        SELECT coalesce(sum(p.score), 0) INTO pair_sum
        FROM unnest(chosen) AS m(id), coret.compatible_with(m.id) AS p WHERE p.other_id = ANY (chosen) AND m.id < p.other_id;
        SELECT sum(c.relevance) INTO relevance_sum
        FROM unnest(candidate_ids, relevances) AS c(id, relevance) WHERE c.id = ANY (chosen);

        SELECT c.id, j.partner_id AS strongest,
               (pair_sum + j.score_sum) / (n * (n + 1) / 2.0) - CASE WHEN n = 1 THEN 0 ELSE pair_sum / (n * (n - 1) / 2.0) END
               + (relevance_sum + c.relevance) / (n + 1) - relevance_sum / n AS marginal_gain
        INTO best
        FROM unnest(candidate_ids, relevances) AS c(id, relevance)
        CROSS JOIN LATERAL (SELECT sum(p.score) AS score_sum, (array_agg(p.other_id ORDER BY p.score DESC, p.other_id))[1] AS partner_id
                            FROM coret.compatible_with(c.id) AS p WHERE p.other_id = ANY (chosen)) AS j
        WHERE c.id <> ALL (chosen) AND j.score_sum > 0
        ORDER BY marginal_gain DESC, c.id LIMIT 1;
        EXIT WHEN NOT FOUND OR best.marginal_gain <= 0;

        chosen := chosen || best.id;
        table_id := best.id; role := 'added by expansion'; partner_id := best.strongest; gain := best.marginal_gain;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION coret.adjust(bigint[], real[], bigint[], real, boolean) IS
    'Tables the adjustment adds to a selection from among the candidates. Step 1: each selected table''s strongest compatible candidate, if its score > tau. Step 2: greedily the candidate with the largest positive gain in mean pairwise score + mean relevance. expand_single: whether step 2 runs on a group of one, whose mean pairwise score then counts as 0.';
