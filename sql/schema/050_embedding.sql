-- ------------------------------------------------------------------
-- Embeddings. Each model has its own dimension, so the columns carry none; every model's
-- HNSW index is built over a cast to its dimension (coret.build_hnsw_index).
-- ------------------------------------------------------------------
CREATE TABLE coret.embedding_model (
    model_id   smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider   text NOT NULL,
    model_name text NOT NULL,
    revision   text NOT NULL,
    dimension  integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    is_active  boolean NOT NULL DEFAULT false,
    added_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (provider, model_name, revision, dimension)
);
CREATE UNIQUE INDEX embedding_model_active ON coret.embedding_model (is_active) WHERE is_active;
COMMENT ON TABLE coret.embedding_model IS 'Embedding models that vectors were computed with; exactly one is active and answers questions.';
COMMENT ON COLUMN coret.embedding_model.revision IS 'Hash of the weights, empty for endpoints.';
COMMENT ON COLUMN coret.embedding_model.dimension IS 'At most 4,000: pgvector indexes vector up to 2,000 and halfvec up to 4,000 dimensions.';

CREATE TABLE coret.table_embedding (
    model_id    smallint NOT NULL REFERENCES coret.embedding_model ON DELETE CASCADE,
    table_id    bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    embedding   vector NOT NULL,
    was_cut     boolean NOT NULL,
    embedded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (model_id, table_id)
);
CREATE INDEX table_embedding_table_id ON coret.table_embedding (table_id);
COMMENT ON TABLE coret.table_embedding IS 'L2-normalised embedding of a table''s text, per model: its name and columns with what people or a chat model wrote, or (setting paper) name + purpose + snapshot.';
COMMENT ON COLUMN coret.table_embedding.was_cut IS 'The text was longer than the model reads; its end is not in the embedding.';

CREATE TABLE coret.column_embedding (
    model_id  smallint NOT NULL REFERENCES coret.embedding_model ON DELETE CASCADE,
    column_id bigint NOT NULL REFERENCES coret.catalog_column ON DELETE CASCADE,
    embedding vector NOT NULL,
    PRIMARY KEY (model_id, column_id)
);
CREATE INDEX column_embedding_column_id ON coret.column_embedding (column_id);
-- Header similarity reads many of these one by one: out-of-line storage costs several times more a pair.
ALTER TABLE coret.column_embedding ALTER COLUMN embedding SET STORAGE PLAIN;
COMMENT ON TABLE coret.column_embedding IS 'L2-normalised embedding of a column''s header (table name + column name), per model.';
