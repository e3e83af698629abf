-- ------------------------------------------------------------------
-- The catalog: which tables the pool holds, with their columns and declared keys.
-- A table is known by its own id; its OID is kept beside it and re-linked when it changes.
-- ------------------------------------------------------------------
CREATE TABLE coret.source (
    source_id   smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_name text NOT NULL UNIQUE,
    kind        text NOT NULL CHECK (kind IN ('here', 'postgres')),
    added_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE coret.source IS 'Where tables of the pool live: "here" is this database.';
COMMENT ON COLUMN coret.source.source_name IS 'Name shown to people; no address and no password is ever kept.';

INSERT INTO coret.source (source_name, kind) VALUES ('here', 'here');

CREATE TABLE coret.catalog_table (
    table_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id       smallint NOT NULL REFERENCES coret.source ON DELETE CASCADE,
    table_oid       oid NOT NULL,
    schema_name     text NOT NULL,
    table_name      text NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('table', 'partitioned table', 'view', 'materialized view', 'foreign table')),
    table_comment   text,
    estimated_rows  bigint,
    definition_hash text NOT NULL,
    data_version    text,
    first_seen_at   timestamptz NOT NULL DEFAULT now(),
    seen_at         timestamptz NOT NULL DEFAULT now(),
    -- Two tables may swap their names between two refreshes: checked at the end of the sync.
    UNIQUE (source_id, schema_name, table_name) DEFERRABLE INITIALLY DEFERRED
);
COMMENT ON TABLE coret.catalog_table IS 'Every table, view and foreign table of the pool, as of the last refresh.';
COMMENT ON COLUMN coret.catalog_table.table_oid IS 'pg_class.oid in its source when last seen; re-linked when the table is recreated.';
COMMENT ON COLUMN coret.catalog_table.estimated_rows IS 'pg_class.reltuples, summed over partitions; by the counters where never analysed, NULL for views.';
COMMENT ON COLUMN coret.catalog_table.definition_hash IS 'Changes when columns, types, comments or keys change.';
COMMENT ON COLUMN coret.catalog_table.data_version IS 'Changes when rows change (file node, tuple counters); NULL where the source cannot tell.';

CREATE TABLE coret.catalog_column (
    column_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id       bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    attnum         smallint NOT NULL,
    column_name    text NOT NULL,
    type_name      text NOT NULL,
    type_family    text CHECK (type_family IN ('integer', 'decimal', 'text', 'date', 'timestamp', 'timestamptz', 'uuid')),
    is_not_null    boolean NOT NULL,
    column_comment text,
    header_words   text[] NOT NULL,
    UNIQUE (table_id, attnum)
);
COMMENT ON TABLE coret.catalog_column IS 'Every column of every table in the catalog, whatever its type.';
COMMENT ON COLUMN coret.catalog_column.type_name IS 'format_type() in the source.';
COMMENT ON COLUMN coret.catalog_column.type_family IS 'Family whose values compare with each other; NULL where the type has no meaning as a key (bool, floats, json, bytea, geometry ...).';
COMMENT ON COLUMN coret.catalog_column.header_words IS 'Lower-case words of table and column name (coret.header_words).';

CREATE TABLE coret.declared_key (
    key_id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id         bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    kind             text NOT NULL CHECK (kind IN ('primary', 'unique', 'foreign')),
    attnums          smallint[] NOT NULL,
    parent_oid       oid,
    parent_attnums   smallint[],
    CHECK ((kind = 'foreign') = (parent_oid IS NOT NULL))
);
CREATE INDEX declared_key_table_id ON coret.declared_key (table_id);
COMMENT ON TABLE coret.declared_key IS 'Primary, unique and foreign keys the source declares.';
COMMENT ON COLUMN coret.declared_key.parent_oid IS 'The table a foreign key points to, by its OID in the source.';
