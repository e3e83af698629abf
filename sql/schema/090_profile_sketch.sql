-- ------------------------------------------------------------------
-- Columns of very many values keep a sketch of their keys; kept values lie together, a row a column.
-- ------------------------------------------------------------------
ALTER TABLE coret.column_profile
    DROP COLUMN is_sampled,
    ADD COLUMN sample_shift smallint NOT NULL DEFAULT 0 CHECK (sample_shift BETWEEN 0 AND 62);
COMMENT ON COLUMN coret.column_profile.sample_shift IS
    '0: every fact is exact and every key is kept. Else a sketch: only keys whose hash (hashint8extended) ends in so many zero bits are kept; distinct_count is exact where they say the column is unique, else estimated from them.';

ALTER TABLE coret.catalog_table ADD COLUMN is_read_whole boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN coret.catalog_table.is_read_whole IS 'Profiled exactly whatever its size: see coret.read_whole.';

CREATE TABLE coret.column_phrases (
    column_id bigint PRIMARY KEY REFERENCES coret.column_profile ON DELETE CASCADE,
    phrases   text[] COLLATE "C" NOT NULL
);
COMMENT ON TABLE coret.column_phrases IS 'Distinct values of text columns that have few, as lower-case words, and the beginnings of two words or more of each: what the words of a question are looked up in.';

-- A row and two index entries a value took more time than reading the column.
INSERT INTO coret.column_phrases (column_id, phrases)
SELECT v.column_id, array_agg(DISTINCT array_to_string(w.words[1:n.length], ' '))
FROM coret.column_value AS v
CROSS JOIN LATERAL (SELECT string_to_array(v.value, ' ') AS words) AS w
CROSS JOIN LATERAL generate_series(least(2, cardinality(w.words)), cardinality(w.words)) AS n(length)
GROUP BY v.column_id;
DROP TABLE coret.column_value;
CREATE INDEX column_phrases_phrases ON coret.column_phrases USING gin (phrases);
