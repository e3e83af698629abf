-- Merge what a source reports (incoming_table) into the catalog; %(source_id)s is that source.
-- Returns the number of tables added, changed and removed.
WITH known AS (
    SELECT * FROM coret.catalog_table WHERE source_id = %(source_id)s
),
matched AS MATERIALIZED (
    -- The same OID is the same table, even renamed; the same name with a new OID was recreated.
    SELECT i.*, coalesce(same_oid.table_id, same_name.table_id) AS table_id,
           coalesce(same_oid.definition_hash, same_name.definition_hash) AS known_definition_hash,
           same_oid.table_id IS NULL AS is_relinked
    FROM pg_temp.incoming_table AS i
    LEFT JOIN known AS same_oid ON same_oid.table_oid = i.table_oid
    LEFT JOIN known AS same_name
        ON same_oid.table_id IS NULL
       AND same_name.schema_name = i.schema_name AND same_name.table_name = i.table_name
       AND same_name.table_oid NOT IN (SELECT table_oid FROM pg_temp.incoming_table)
),
removed AS (
    DELETE FROM coret.catalog_table AS t
    WHERE t.source_id = %(source_id)s
      AND NOT EXISTS (SELECT FROM matched AS m WHERE m.table_id = t.table_id)
    RETURNING t.table_id
),
-- No foreign key does it, nor for the columns of a join below.
removed_pair AS (
    DELETE FROM coret.compatibility AS c USING removed AS r WHERE r.table_id IN (c.table_a, c.table_b)
),
updated AS (
    UPDATE coret.catalog_table AS t
    SET table_oid = m.table_oid, schema_name = m.schema_name, table_name = m.table_name, kind = m.kind,
        table_comment = m.table_comment, estimated_rows = m.estimated_rows,
        definition_hash = m.definition_hash, data_version = m.data_version, seen_at = now()
    FROM matched AS m WHERE m.table_id = t.table_id
    RETURNING t.table_id, t.table_oid
),
added AS (
    INSERT INTO coret.catalog_table (source_id, table_oid, schema_name, table_name, kind, table_comment,
        estimated_rows, definition_hash, data_version)
    SELECT %(source_id)s, m.table_oid, m.schema_name, m.table_name, m.kind, m.table_comment,
           m.estimated_rows, m.definition_hash, m.data_version
    FROM matched AS m WHERE m.table_id IS NULL
    RETURNING table_id, table_oid
),
changed AS MATERIALIZED (
    SELECT coalesce(m.table_id, a.table_id) AS table_id, m.table_name, m.columns, m.keys,
           m.table_id IS NOT NULL AS was_known
    FROM matched AS m LEFT JOIN added AS a USING (table_oid)
    WHERE m.known_definition_hash IS DISTINCT FROM m.definition_hash
),
reported_column AS MATERIALIZED (
    SELECT c.table_id, x.*, w.header_words, coret.word_hashes(w.header_words) AS header_hashes
    FROM changed AS c CROSS JOIN LATERAL jsonb_to_recordset(c.columns)
        AS x(attnum smallint, name text, type text, family text, is_not_null boolean, comment text)
    CROSS JOIN LATERAL (SELECT coret.header_words(c.table_name, x.name) AS header_words) AS w
),
removed_column AS (
    DELETE FROM coret.catalog_column AS c
    WHERE c.table_id IN (SELECT table_id FROM changed)
      AND NOT EXISTS (SELECT FROM reported_column AS r WHERE r.table_id = c.table_id AND r.attnum = c.attnum)
    RETURNING c.column_id
),
removed_edge AS (
    DELETE FROM coret.join_edge AS e USING (SELECT array_agg(column_id) AS columns FROM removed_column) AS r
    WHERE e.child_columns && r.columns OR e.parent_columns && r.columns
),
stored_column AS (
    INSERT INTO coret.catalog_column (table_id, attnum, column_name, type_name, type_family, is_not_null,
        column_comment, header_words, header_hashes)
    SELECT table_id, attnum, name, type, family, is_not_null, comment, header_words, header_hashes FROM reported_column
    ON CONFLICT (table_id, attnum) DO UPDATE
    SET column_name = excluded.column_name, type_name = excluded.type_name, type_family = excluded.type_family,
        is_not_null = excluded.is_not_null, column_comment = excluded.column_comment,
        header_words = excluded.header_words, header_hashes = excluded.header_hashes
),
removed_key AS (
    DELETE FROM coret.declared_key WHERE table_id IN (SELECT table_id FROM changed)
),
stored_key AS (
    INSERT INTO coret.declared_key (table_id, kind, attnums, parent_oid, parent_attnums)
    SELECT c.table_id, k.kind, k.attnums, k.parent_oid, k.parent_attnums
    FROM changed AS c CROSS JOIN LATERAL jsonb_to_recordset(c.keys)
        AS k(kind text, attnums smallint[], parent_oid oid, parent_attnums smallint[])
)
SELECT (SELECT count(*) FROM added), (SELECT count(*) FROM changed WHERE was_known), (SELECT count(*) FROM removed)
