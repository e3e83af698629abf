-- ------------------------------------------------------------------
-- Compatibility: which tables join, on which columns, and how well.
-- A plain table, not a materialized view: it is renewed a table at a time and can carry row-level security.
-- ------------------------------------------------------------------
CREATE TABLE coret.inclusion (
    sub_column bigint NOT NULL REFERENCES coret.column_profile ON DELETE CASCADE,
    sup_column bigint NOT NULL REFERENCES coret.column_profile ON DELETE CASCADE,
    PRIMARY KEY (sup_column, sub_column)
);
CREATE INDEX inclusion_sub_column ON coret.inclusion (sub_column);
COMMENT ON TABLE coret.inclusion IS 'Column pairs where sub''s distinct values are included in sup''s and one side is unique. Pairs whose sup is an interval are left out: min_key and max_key tell.';

CREATE TABLE coret.compatibility (
    table_a           bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    table_b           bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    column_a          bigint NOT NULL REFERENCES coret.catalog_column ON DELETE CASCADE,
    column_b          bigint NOT NULL REFERENCES coret.catalog_column ON DELETE CASCADE,
    score             real NOT NULL CHECK (score BETWEEN 0 AND 1),
    jaccard           real NOT NULL CHECK (jaccard BETWEEN 0 AND 1),
    header_similarity real NOT NULL CHECK (header_similarity BETWEEN 0 AND 1),
    a_in_b            real NOT NULL,
    b_in_a            real NOT NULL,
    a_is_unique       boolean NOT NULL,
    b_is_unique       boolean NOT NULL,
    cardinality       text GENERATED ALWAYS AS (
        CASE WHEN a_is_unique AND b_is_unique THEN '1:1' WHEN a_is_unique THEN '1:N' ELSE 'N:1' END) STORED,
    evidence          text NOT NULL DEFAULT 'inferred' CHECK (evidence IN ('inferred', 'declared', 'confirmed', 'rejected')),
    is_sampled        boolean NOT NULL DEFAULT false,
    computed_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (table_a, table_b),
    CHECK (table_a < table_b),
    CHECK (a_is_unique OR b_is_unique)
);
CREATE INDEX compatibility_table_b ON coret.compatibility (table_b);
CREATE INDEX compatibility_column_a ON coret.compatibility (column_a);
CREATE INDEX compatibility_column_b ON coret.compatibility (column_b);
COMMENT ON TABLE coret.compatibility IS 'Pairs of tables with a column pair that passes the gate (one side unique, one side''s distinct values included in the other''s): the best pair and its score.';
COMMENT ON COLUMN coret.compatibility.score IS '0.5 * jaccard + 0.5 * header_similarity of the best column pair.';
COMMENT ON COLUMN coret.compatibility.jaccard IS 'Shared over all distinct values; under the gate the smaller count over the larger.';
COMMENT ON COLUMN coret.compatibility.header_similarity IS '0.5 * cosine of the header embeddings (0..1) + 0.5 * overlap coefficient of the header words.';
COMMENT ON COLUMN coret.compatibility.a_in_b IS 'Share of column_a''s distinct values found in column_b.';
COMMENT ON COLUMN coret.compatibility.cardinality IS 'Read from table_a to table_b: 1:1, 1:N or N:1.';
