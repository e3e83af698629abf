-- ------------------------------------------------------------------
-- What was read from user tables: a few sampled rows, and facts about each column.
-- ------------------------------------------------------------------
CREATE TABLE coret.table_snapshot (
    table_id     bigint PRIMARY KEY REFERENCES coret.catalog_table ON DELETE CASCADE,
    column_names text[] NOT NULL,
    sampled_rows jsonb NOT NULL,
    markdown     text NOT NULL,
    seed         bigint NOT NULL,
    taken_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE coret.table_snapshot IS 'Rows of a table sampled without replacement (seeded), as text, for its snapshot.';
COMMENT ON COLUMN coret.table_snapshot.markdown IS 'The snapshot as models read it: name, header and rows as a Markdown table.';
COMMENT ON COLUMN coret.table_snapshot.sampled_rows IS 'Array of rows, each an array of texts (cut at 200 characters) or nulls, in the order of column_names.';

CREATE TABLE coret.column_profile (
    column_id       bigint PRIMARY KEY REFERENCES coret.catalog_column ON DELETE CASCADE,
    row_count       bigint NOT NULL,
    null_count      bigint NOT NULL,
    distinct_count  bigint NOT NULL,
    is_unique       boolean GENERATED ALWAYS AS (distinct_count > 0 AND distinct_count = row_count - null_count) STORED,
    min_value       text,
    max_value       text,
    frequent_values text[] NOT NULL,
    key_kind        text CHECK (key_kind IN ('integer', 'decimal', 'text', 'date', 'timestamp', 'timestamptz', 'uuid')),
    min_key         bigint,
    max_key         bigint,
    is_interval     boolean GENERATED ALWAYS AS (
        key_kind IN ('integer', 'date') AND distinct_count > 0
        AND max_key::numeric - min_key + 1 = distinct_count) STORED,
    is_sampled      boolean NOT NULL DEFAULT false,
    profiled_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE coret.column_profile IS 'Facts about a column''s values; only columns of a type family have keys.';
COMMENT ON COLUMN coret.column_profile.is_unique IS 'Distinct values = non-null values, at least one; NULLs are ignored.';
COMMENT ON COLUMN coret.column_profile.key_kind IS 'The family its values really have: numeric without fraction is "integer", timestamps all at midnight are "date".';
COMMENT ON COLUMN coret.column_profile.min_key IS 'Least 64-bit key: integers and dates as themselves, others by hash.';
COMMENT ON COLUMN coret.column_profile.is_interval IS 'The keys are every whole number from min_key to max_key: no values need keeping.';

CREATE TABLE coret.column_keys (
    column_id bigint PRIMARY KEY REFERENCES coret.column_profile ON DELETE CASCADE,
    keys      bigint[] NOT NULL,
    probes    bigint[] NOT NULL
);
-- Hashes don't compress, and what isn't compressed is read faster.
ALTER TABLE coret.column_keys ALTER COLUMN keys SET STORAGE EXTERNAL;
COMMENT ON TABLE coret.column_keys IS 'Sorted distinct 64-bit keys of a column that is no interval, and up to eight of them, spread, as probes.';

CREATE TABLE coret.column_value (
    column_id bigint NOT NULL REFERENCES coret.column_profile ON DELETE CASCADE,
    value     text COLLATE "C" NOT NULL,
    PRIMARY KEY (column_id, value)
);
CREATE INDEX column_value_value ON coret.column_value (value) INCLUDE (column_id);
COMMENT ON TABLE coret.column_value IS 'Distinct values of text columns that have few, as lower-case words: what the words of a question are looked up in.';

-- A question's words are looked up in the names of tables too.
CREATE INDEX catalog_table_plain_name ON coret.catalog_table ((translate(lower(table_name), '_ -.', '')));
