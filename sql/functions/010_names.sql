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

CREATE OR REPLACE FUNCTION coret.word_overlap(a text[], b text[]) RETURNS real
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    SELECT CASE WHEN cardinality(a) = 0 OR cardinality(b) = 0 THEN 0
                ELSE (SELECT count(*) FROM unnest(a) AS word WHERE word = ANY (b))::real
                     / least(cardinality(a), cardinality(b)) END;
END;
COMMENT ON FUNCTION coret.word_overlap(text[], text[]) IS
    'Overlap coefficient of two word sets: shared words over the size of the smaller set, 0..1.';

CREATE OR REPLACE FUNCTION coret.qualified_name(schema_name text, table_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
BEGIN ATOMIC
    SELECT quote_ident(schema_name) || '.' || quote_ident(table_name);
END;
COMMENT ON FUNCTION coret.qualified_name(text, text) IS
    'schema.table, each part quoted where SQL needs it: a table''s identity in every output.';
