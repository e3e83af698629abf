-- Adjustment: the two additive steps after selection. Nothing selected is ever taken away.

CREATE OR REPLACE FUNCTION coret.adjust(
    candidate_ids bigint[], relevances real[], selected_ids bigint[], tau real DEFAULT 0.5, expand_single boolean DEFAULT false)
RETURNS TABLE (table_id bigint, role text, partner_id bigint, gain real)
LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    member bigint;
    best record;
    chosen bigint[] := selected_ids;
    -- Scores among the candidates, each pair from either side.
    from_ids bigint[];
    to_ids bigint[];
    scores real[];
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

    -- Computed, not read: pairs below the floor of coret.compatibility count too.
    SELECT array_agg(s.from_id), array_agg(s.to_id), array_agg(c.score) INTO from_ids, to_ids, scores
    FROM coret.compatible_among(candidate_ids) AS c
    CROSS JOIN LATERAL (VALUES (c.table_a, c.table_b), (c.table_b, c.table_a)) AS s(from_id, to_id);

    -- Step 1: each selected table brings its strongest compatible candidate, if that is strong enough.
    FOREACH member IN ARRAY selected_ids LOOP
        SELECT p.to_id, p.score INTO best
        FROM unnest(from_ids, to_ids, scores) AS p(from_id, to_id, score)
        WHERE p.from_id = member
        ORDER BY p.score DESC, p.to_id LIMIT 1;
        IF FOUND AND best.score > tau AND best.to_id <> ALL (chosen) THEN
            chosen := chosen || best.to_id;
            table_id := best.to_id; role := 'added by compatibility'; partner_id := member; gain := best.score;
            RETURN NEXT;
        END IF;
    END LOOP;

    -- Step 2: grow the group while some compatible candidate raises mean pairwise score + mean relevance.
    LOOP
        n := cardinality(chosen);
        EXIT WHEN n = 0 OR (n = 1 AND NOT expand_single);
        SELECT coalesce(sum(p.score), 0) INTO pair_sum
        FROM unnest(from_ids, to_ids, scores) AS p(from_id, to_id, score)
        WHERE p.from_id < p.to_id AND p.from_id = ANY (chosen) AND p.to_id = ANY (chosen);
        SELECT sum(c.relevance) INTO relevance_sum
        FROM unnest(candidate_ids, relevances) AS c(id, relevance) WHERE c.id = ANY (chosen);

        SELECT c.id, j.partner_id AS strongest,
               (pair_sum + j.score_sum) / (n * (n + 1) / 2.0) - CASE WHEN n = 1 THEN 0 ELSE pair_sum / (n * (n - 1) / 2.0) END
               + (relevance_sum + c.relevance) / (n + 1) - relevance_sum / n AS marginal_gain
        INTO best
        FROM unnest(candidate_ids, relevances) AS c(id, relevance)
        JOIN (SELECT p.from_id, sum(p.score) AS score_sum, (array_agg(p.to_id ORDER BY p.score DESC, p.to_id))[1] AS partner_id
              FROM unnest(from_ids, to_ids, scores) AS p(from_id, to_id, score)
              WHERE p.to_id = ANY (chosen) GROUP BY p.from_id) AS j ON j.from_id = c.id
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
