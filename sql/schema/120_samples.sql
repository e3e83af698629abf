-- ------------------------------------------------------------------
-- What of the values may be kept, and what may leave the database in a prompt.
-- ------------------------------------------------------------------
CREATE TABLE coret.sample_policy (
    source_name text,
    schema_name text,
    table_name  text,
    column_name text,
    level       text NOT NULL CHECK (level IN ('names', 'statistics', 'masked', 'samples')),
    set_by      text NOT NULL DEFAULT current_user,
    set_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE NULLS NOT DISTINCT (source_name, schema_name, table_name, column_name),
    CHECK (schema_name IS NOT NULL OR table_name IS NULL),
    CHECK (table_name IS NOT NULL OR column_name IS NULL)
);
COMMENT ON TABLE coret.sample_policy IS 'How much of a column''s values may be kept and shown, for a source, a schema, a table or a column (NULL: all of them); the narrowest rule wins. Set by coret.set_sample_policy.';
COMMENT ON COLUMN coret.sample_policy.level IS 'names: names and types; statistics: counts too, and the least and greatest number or date; masked: sampled values with letters and digits replaced; samples: values as they are. Without a rule: samples, but masked to an endpoint on another host.';

CREATE TABLE coret.deny_pattern (
    pattern  text NOT NULL CHECK (pattern <> ''),
    matches  text NOT NULL CHECK (matches IN ('column name', 'value')),
    added_by text NOT NULL DEFAULT current_user,
    added_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pattern, matches)
);
COMMENT ON TABLE coret.deny_pattern IS 'Regular expressions (case ignored): a column whose name matches is held to the level "names", a value that matches is only kept and shown masked. Kept by coret.deny and coret.undeny.';

INSERT INTO coret.deny_pattern (pattern, matches)
SELECT p.pattern, p.matches
FROM (VALUES
    ('e[-_ ]?mail', 'column name'),
    ('phone|(^|[-_ ])(fax|mobile)($|[-_ ])', 'column name'),
    ('(credit|debit|bank|card)[-_ ]?(card|account|number|no|num)|(^|[-_ ])(iban|bic|cvv|cvc|pan)($|[-_ ])', 'column name'),
    ('passw(or)?d|pass[-_ ]?phrase|secret|api[-_ ]?key|private[-_ ]?key|(access|auth|refresh|session|bearer)[-_ ]?token|(^|[-_ ])(token|pwd|salt|otp)($|[-_ ])|(password|pin)[-_ ]?hash', 'column name'),
    ('(^|[-_ ])(ssn|tax[-_ ]?id|passport)([-_ ]|$)|social[-_ ]?security|national[-_ ]?id|(birth[-_ ]?date|date[-_ ]?of[-_ ]?birth|(^|[-_ ])dob($|[-_ ]))', 'column name'),
    ('[[:alnum:]._%+-]+@[[:alnum:]-]+(\.[[:alnum:]-]+)+', 'value'),
    ('(^|[^0-9.])([0-9][ -]?){13,18}[0-9]($|[^0-9])', 'value'),
    ('^(\+[0-9][0-9 ()./-]{6,}[0-9]|\(?[0-9]{2,5}\)?[ -][0-9]{3,4}[ -]?[0-9]{3,4})$', 'value'),
    ('(^|[^[:alnum:]])(sk|pk|ghp|gho|xox[abp]|AKIA|eyJ)[-_[:alnum:]]{16,}', 'value')
) AS p(pattern, matches)
-- Somebody's own list, put aside by a downgrade, is taken back instead.
WHERE to_regclass('coret_kept.deny_pattern') IS NULL;

-- A sampled row is kept a column at a time: each column has its own readers, and its own policy.
CREATE TABLE coret.column_sample (
    column_id      bigint PRIMARY KEY REFERENCES coret.catalog_column ON DELETE CASCADE,
    sampled_values text[] NOT NULL
);
COMMENT ON TABLE coret.column_sample IS 'Values of a column in the sampled rows of its table, in one order for all columns of it, cut at 200 characters; none where the policy keeps none.';

INSERT INTO coret.column_sample (column_id, sampled_values)
SELECT c.column_id, s.sampled_values
FROM coret.table_snapshot AS t
CROSS JOIN LATERAL unnest(t.column_names) WITH ORDINALITY AS n(column_name, place)
JOIN coret.catalog_column AS c ON c.table_id = t.table_id AND c.column_name = n.column_name
CROSS JOIN LATERAL (SELECT coalesce(array_agg(r.cells ->> (n.place - 1)::integer ORDER BY r.position), '{}') AS sampled_values
                    FROM jsonb_array_elements(t.sampled_rows) WITH ORDINALITY AS r(cells, position)) AS s;

ALTER TABLE coret.table_snapshot
    ADD COLUMN row_count integer NOT NULL DEFAULT 0,
    ADD COLUMN content_hash text;
UPDATE coret.table_snapshot SET row_count = jsonb_array_length(sampled_rows), content_hash = md5(markdown);
ALTER TABLE coret.table_snapshot
    DROP COLUMN column_names,
    DROP COLUMN sampled_rows,
    DROP COLUMN markdown,
    ALTER COLUMN row_count DROP DEFAULT,
    ALTER COLUMN content_hash SET NOT NULL;
COMMENT ON TABLE coret.table_snapshot IS 'When and how rows of a table were sampled (seeded, without replacement) for its snapshot; the values are in coret.column_sample.';
COMMENT ON COLUMN coret.table_snapshot.content_hash IS 'Changes with the sampled values.';

-- Worked out once for each column, so that whoever may read the column needn't read all policies.
ALTER TABLE coret.catalog_column
    ADD COLUMN sample_level text CHECK (sample_level IN ('names', 'statistics', 'masked', 'samples'));
COMMENT ON COLUMN coret.catalog_column.sample_level IS 'The level of coret.sample_policy and coret.deny_pattern for this column (coret.apply_sample_policies); NULL where no rule names it.';

ALTER TABLE coret.purpose ADD COLUMN saw_samples boolean NOT NULL DEFAULT false;
-- Of those already there nobody knows what they quote.
UPDATE coret.purpose SET saw_samples = true WHERE made_by <> 'person';
COMMENT ON COLUMN coret.purpose.saw_samples IS 'Whether a model wrote it from values as they are, so that it may quote some.';

ALTER TABLE coret.llm_call
    ADD COLUMN prompt text,
    ADD COLUMN asked_by text NOT NULL DEFAULT current_user;
COMMENT ON TABLE coret.llm_call IS 'Ledger of calls to a chat model: what for, by whom, which model, what was sent, tokens, seconds, outcome.';
COMMENT ON COLUMN coret.llm_call.prompt IS 'Every word that was sent; NULL where CORET_LEDGER_PROMPTS=hash keeps the hash alone.';
COMMENT ON COLUMN coret.llm_call.asked_by IS 'The role that asked, or that ran the refresh.';
