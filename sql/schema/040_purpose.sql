-- ------------------------------------------------------------------
-- What each table is for, in words.
-- ------------------------------------------------------------------
CREATE TABLE coret.purpose (
    table_id    bigint PRIMARY KEY REFERENCES coret.catalog_table ON DELETE CASCADE,
    purpose     text NOT NULL,
    made_by     text NOT NULL CHECK (made_by IN ('composed', 'llm', 'person')),
    model_name  text,
    made_at     timestamptz NOT NULL DEFAULT now(),
    CHECK ((made_by = 'llm') = (model_name IS NOT NULL))
);
COMMENT ON TABLE coret.purpose IS 'One paragraph a table: what it holds, key entities, attributes, granularity, typical use.';
COMMENT ON COLUMN coret.purpose.made_by IS 'composed: from names, comments, types, keys and values, without a model; llm: written by model_name; person: from coret.purpose_note.';

-- Kept by name, apart from the catalog: what a person wrote outlives every refresh and every migration.
CREATE TABLE coret.purpose_note (
    schema_name text NOT NULL,
    table_name  text NOT NULL,
    purpose     text NOT NULL CHECK (purpose <> ''),
    written_by  text NOT NULL DEFAULT current_user,
    written_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (schema_name, table_name)
);
COMMENT ON TABLE coret.purpose_note IS 'A person''s own words about a table; they win over every other purpose.';
