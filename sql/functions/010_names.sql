-- Names and types.

CREATE OR REPLACE FUNCTION coret.header_words(table_name text, column_name text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    SELECT coalesce(array_agg(DISTINCT word ORDER BY word), '{}')
    FROM regexp_split_to_table(lower(table_name || ' ' || column_name), '[_.\s]+') AS word
    WHERE word <> '';
END;
COMMENT ON FUNCTION coret.header_words(text, text) IS
    'Lower-case word set of a header (table name + column name), split at underscores, dots and blanks.';

CREATE OR REPLACE FUNCTION coret.word_hashes(words text[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN array(SELECT hashtextextended(word COLLATE "C", 0) FROM unnest(words) AS word ORDER BY 1);
COMMENT ON FUNCTION coret.word_hashes(text[]) IS 'Hashes of words, sorted: what sets of words are compared by.';

CREATE OR REPLACE FUNCTION coret.shared_words(a bigint[], b bigint[]) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN (SELECT count(*) FROM unnest(a) AS word WHERE word = ANY (b))::integer;
COMMENT ON FUNCTION coret.shared_words(bigint[], bigint[]) IS 'How many words two sets of hashes share.';

CREATE OR REPLACE FUNCTION coret.word_overlap(a bigint[], b bigint[]) RETURNS real
LANGUAGE sql IMMUTABLE PARALLEL SAFE
-- Written out for up to six words, mostly two or three: asked for millions of pairs, a sub-select
-- would take most of the time.
RETURN coalesce(CASE
    WHEN cardinality(a) <= 3 THEN
        ((a[1] = ANY (b)) IS TRUE)::integer + ((a[2] = ANY (b)) IS TRUE)::integer + ((a[3] = ANY (b)) IS TRUE)::integer
    WHEN cardinality(a) <= 6 THEN
        ((a[1] = ANY (b)) IS TRUE)::integer + ((a[2] = ANY (b)) IS TRUE)::integer + ((a[3] = ANY (b)) IS TRUE)::integer
        + ((a[4] = ANY (b)) IS TRUE)::integer + ((a[5] = ANY (b)) IS TRUE)::integer + ((a[6] = ANY (b)) IS TRUE)::integer
    ELSE coret.shared_words(a, b) END::real / nullif(least(cardinality(a), cardinality(b)), 0), 0)::real;
COMMENT ON FUNCTION coret.word_overlap(bigint[], bigint[]) IS
    'Overlap coefficient of two word sets, given as their hashes: shared words over the size of the smaller set, 0..1.';

CREATE OR REPLACE FUNCTION coret.qualified_name(schema_name text, table_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    SELECT quote_ident(schema_name) || '.' || quote_ident(table_name);
END;
COMMENT ON FUNCTION coret.qualified_name(text, text) IS
    'schema.table, each part quoted where SQL needs it: a table''s identity in every output.';
