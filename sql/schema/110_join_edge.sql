-- ------------------------------------------------------------------
-- Which joins a person would believe: beside the exact score, never instead of it.
-- ------------------------------------------------------------------
CREATE TABLE coret.join_edge (
    edge_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    child_table    bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    parent_table   bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    child_columns  bigint[] NOT NULL,
    parent_columns bigint[] NOT NULL,
    evidence       text NOT NULL CHECK (evidence IN ('inferred', 'declared', 'confirmed')),
    name_fit       real NOT NULL CHECK (name_fit BETWEEN 0 AND 1),
    included       real CHECK (included BETWEEN 0 AND 1),
    cardinality    text NOT NULL CHECK (cardinality IN ('1:1', 'N:1', 'N:M')),
    is_sampled     boolean NOT NULL DEFAULT false,
    equals         integer NOT NULL DEFAULT 0,
    betters        integer NOT NULL DEFAULT 0,
    rivals         integer NOT NULL DEFAULT 0,
    confidence     real NOT NULL DEFAULT 0 CHECK (confidence BETWEEN 0 AND 1),
    computed_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (child_columns, parent_columns),
    CHECK (child_table <> parent_table),
    CHECK (cardinality(child_columns) = cardinality(parent_columns) AND cardinality(child_columns) >= 1)
);
CREATE INDEX join_edge_child_table ON coret.join_edge (child_table);
CREATE INDEX join_edge_parent_table ON coret.join_edge (parent_table);
COMMENT ON TABLE coret.join_edge IS 'Possible joins with a confidence: child columns that may point to a parent''s. Two tables may have several.';
COMMENT ON COLUMN coret.join_edge.child_columns IS 'Column ids, ascending; several for a composite key. parent_columns are in the same order.';
COMMENT ON COLUMN coret.join_edge.evidence IS 'inferred: from names and values; declared: a foreign key of the source; confirmed: accepted by a person.';
COMMENT ON COLUMN coret.join_edge.name_fit IS 'How well the names fit a join, 0 to 1 (coret_pg/join_names.py).';
COMMENT ON COLUMN coret.join_edge.included IS 'Share of the child''s distinct values found in the parent''s; NULL where there are no values to compare.';
COMMENT ON COLUMN coret.join_edge.cardinality IS 'Read from child to parent; N:M where the parent''s columns are not unique.';
COMMENT ON COLUMN coret.join_edge.equals IS 'How many other parents fit the child''s columns as well, names and values compared.';
COMMENT ON COLUMN coret.join_edge.betters IS 'How many other parents fit the child''s columns better.';
COMMENT ON COLUMN coret.join_edge.rivals IS 'How many other tables of the child''s name fit the same parent columns.';
COMMENT ON COLUMN coret.join_edge.confidence IS '0 to 1: how likely the join is meant, among all that were found (coret.weigh_joins). 1: declared or confirmed.';

-- Kept by name, apart from the catalog: what a person decided outlives every refresh and every migration.
CREATE TABLE coret.join_verdict (
    left_schema   text NOT NULL,
    left_table    text NOT NULL,
    left_columns  text[] NOT NULL,
    right_schema  text NOT NULL,
    right_table   text NOT NULL,
    right_columns text[] NOT NULL,
    verdict       text NOT NULL CHECK (verdict IN ('accepted', 'rejected')),
    decided_by    text NOT NULL DEFAULT current_user,
    decided_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (left_schema, left_table, left_columns, right_schema, right_table, right_columns),
    CHECK ((left_schema, left_table) < (right_schema, right_table)),
    CHECK (cardinality(left_columns) = cardinality(right_columns) AND cardinality(left_columns) >= 1)
);
COMMENT ON TABLE coret.join_verdict IS 'Joins that a person accepted or rejected (coret.accept_join, coret.reject_join); they win over everything computed.';
COMMENT ON COLUMN coret.join_verdict.left_table IS 'The table whose name sorts first: a verdict has no direction, and there is one a join.';
COMMENT ON COLUMN coret.join_verdict.left_columns IS 'Sorted by name, right_columns in the same order.';

-- Refreshes have one more step.
ALTER TABLE coret.table_step
    DROP CONSTRAINT table_step_step_check,
    ADD CONSTRAINT table_step_step_check
        CHECK (step IN ('snapshot', 'profile', 'purpose', 'embedding', 'inclusion', 'compatibility', 'joins'));
