-- ------------------------------------------------------------------
-- Compatibility holds scores alone, and only those that tell something; what is known of a join
-- besides is coret.join_edge's.
-- ------------------------------------------------------------------
DROP INDEX coret.compatibility_column_a, coret.compatibility_column_b;
ALTER TABLE coret.compatibility
    DROP COLUMN evidence,
    -- A check of each of millions of pairs took as long as scoring and storing them. A table's pairs
    -- go with it (sql/queries/sync_catalog.sql); a column goes with its table's definition, and then
    -- the pairs are renewed. Whoever reads pairs joins the catalog.
    DROP CONSTRAINT compatibility_table_a_fkey,
    DROP CONSTRAINT compatibility_table_b_fkey,
    DROP CONSTRAINT compatibility_column_a_fkey,
    DROP CONSTRAINT compatibility_column_b_fkey;
COMMENT ON TABLE coret.compatibility IS 'Pairs of tables with a column pair that passes the gate (one side unique, one side''s distinct values included in the other''s) and a score above the floor of coret.compatibility_setting: the best pair and its score. coret.compatible_among computes the others at any time.';

CREATE TABLE coret.compatibility_setting (
    gate        text NOT NULL CHECK (gate IN ('families', 'strict')),
    score_floor real NOT NULL CHECK (score_floor BETWEEN 0 AND 1),
    -- One row.
    is_the_one  boolean PRIMARY KEY DEFAULT true CHECK (is_the_one)
);
COMMENT ON TABLE coret.compatibility_setting IS 'How compatibility is computed; written by the refresh, so that stored and computed scores agree.';
COMMENT ON COLUMN coret.compatibility_setting.gate IS 'families: types of one family compare, NULLs are ignored. strict, as the reference code: equal declared types only, and a column with a NULL is not unique.';
COMMENT ON COLUMN coret.compatibility_setting.score_floor IS 'Pairs of tables below this score are not stored; 0 stores all.';
INSERT INTO coret.compatibility_setting (gate, score_floor) VALUES ('families', 0.4);

-- Millions of headers are compared: by hashes, not by texts.
ALTER TABLE coret.catalog_column ADD COLUMN header_hashes bigint[];
UPDATE coret.catalog_column
SET header_hashes = array(SELECT hashtextextended(word COLLATE "C", 0) FROM unnest(header_words) AS word ORDER BY 1);
ALTER TABLE coret.catalog_column ALTER COLUMN header_hashes SET NOT NULL;
COMMENT ON COLUMN coret.catalog_column.header_hashes IS 'Hashes of header_words, sorted.';
