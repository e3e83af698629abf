-- Everything the pool's catalog needs of one Postgres database, a row a table. Run in the source.
-- pg_catalog only: information_schema hides constraints from roles with SELECT alone, and matviews.
WITH RECURSIVE base_type AS (
    -- A domain compares as the type it is built on.
    SELECT oid, oid AS base FROM pg_type WHERE typtype <> 'd'
    UNION ALL
    SELECT d.oid, b.base FROM pg_type AS d JOIN base_type AS b ON b.oid = d.typbasetype WHERE d.typtype = 'd'
),
type_family AS (
    SELECT b.oid,
           CASE WHEN t.typname IN ('int2', 'int4', 'int8') AND n.nspname = 'pg_catalog' THEN 'integer'
                WHEN t.typname = 'numeric' THEN 'decimal'
                WHEN t.typname IN ('text', 'varchar', 'bpchar', 'name', 'citext') OR t.typtype = 'e' THEN 'text'
                WHEN t.typname IN ('date', 'timestamp', 'timestamptz', 'uuid') AND n.nspname = 'pg_catalog' THEN t.typname
           END AS family
    FROM base_type AS b JOIN pg_type AS t ON t.oid = b.base JOIN pg_namespace AS n ON n.oid = t.typnamespace
),
pool_table AS (
    SELECT c.oid, n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class') AS comment,
           -- Partitions collapse into their parent, which has no rows of its own.
           parts.estimated_rows, parts.data_version
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        SELECT -- Never analysed: as the counters say. (pg_relation_size would wait for locks.)
               sum(CASE WHEN p.reltuples >= 0 THEN p.reltuples ELSE pg_stat_get_live_tuples(p.oid) END)::bigint AS estimated_rows,
               -- By functions: the view pg_stat_all_tables would be worked out anew for every table.
               -- Not the size: vacuum changes it without changing a row.
               md5(string_agg(concat_ws('/', p.oid, p.relfilenode,
                   pg_stat_get_tuples_inserted(p.oid), pg_stat_get_tuples_updated(p.oid),
                   pg_stat_get_tuples_deleted(p.oid)), ',' ORDER BY p.oid)) AS data_version
        FROM (SELECT c.oid AS relid WHERE c.relkind IN ('r', 'm')
              UNION ALL
              SELECT t.relid FROM pg_partition_tree(c.oid) AS t WHERE c.relkind = 'p' AND t.isleaf) AS leaf
        JOIN pg_class AS p ON p.oid = leaf.relid
    ) AS parts
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND NOT c.relispartition
      AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('information_schema', 'coret', 'coret_kept')
      AND n.nspname !~ '^pg_'
      AND NOT EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
),
-- All columns at once: a look at the types for each table would grow with the square of the tables.
pool_column AS MATERIALIZED (
    SELECT a.attrelid, jsonb_agg(jsonb_build_object(
               'attnum', a.attnum, 'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
               'family', f.family, 'is_not_null', a.attnotnull, 'comment', col_description(a.attrelid, a.attnum))
           ORDER BY a.attnum) AS list
    FROM pool_table AS t
    JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN type_family AS f ON f.oid = a.atttypid
    GROUP BY a.attrelid
)
SELECT t.oid AS table_oid, t.nspname::text AS schema_name, t.relname::text AS table_name,
       CASE t.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
                      WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END AS kind,
       t.comment AS table_comment, t.estimated_rows, t.data_version,
       md5(concat_ws('|', t.nspname, t.relname, t.relkind, t.comment, columns.list, keys.list,
                     CASE WHEN t.relkind IN ('v', 'm') THEN pg_get_viewdef(t.oid) END)) AS definition_hash,
       coalesce(columns.list, '[]') AS columns, keys.list AS keys
FROM pool_table AS t
LEFT JOIN pool_column AS columns ON columns.attrelid = t.oid
CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'kind', CASE k.contype WHEN 'p' THEN 'primary' WHEN 'u' THEN 'unique' ELSE 'foreign' END,
               'attnums', k.conkey, 'parent_oid', nullif(k.confrelid, 0), 'parent_attnums', k.confkey)
           ORDER BY k.contype, k.conkey), '[]') AS list
    FROM pg_constraint AS k
    WHERE k.conrelid = t.oid AND k.contype IN ('p', 'u', 'f')
) AS keys
ORDER BY t.nspname, t.relname
