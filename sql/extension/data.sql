-- Which rows of ours pg_dump saves: what people and refreshes wrote, not what the scripts did.
DO $$
DECLARE
    member record;
    condition text;
    seeds text;
BEGIN
    FOR member IN
        SELECT c.oid, c.oid::regclass::text AS name, seeded.key, e.extcondition[array_position(e.extconfig, c.oid)] AS condition
        FROM pg_extension AS e
        JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                               AND d.classid = 'pg_class'::regclass
        JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'S')
        -- Tables whose first rows the scripts write, and what tells these rows apart.
        LEFT JOIN (VALUES ('source', 'source_name'), ('deny_pattern', 'pattern, matches')) AS seeded(name, key)
               ON seeded.name = c.relname
        WHERE e.extname = 'coret'
          -- Each installation's own; the setting is written by every refresh.
          AND c.relname NOT IN ('schema_version', 'routine_build', 'seal_key', 'compatibility_setting')
        ORDER BY c.relname
    LOOP
        condition := coalesce(member.condition, '');
        IF member.key IS NOT NULL THEN
            -- Restored into a new installation, they would be there twice.
            EXECUTE format('SELECT string_agg(quote_literal(ROW(%1$s)::text), '', '' ORDER BY %1$s) FROM %2$s WHERE added_at = now()', member.key, member.name)
            INTO seeds;
            IF seeds IS NOT NULL THEN
                condition := format('%s ROW(%s)::text NOT IN (%s)', CASE condition WHEN '' THEN 'WHERE' ELSE condition || ' AND' END, member.key, seeds);
            END IF;
        END IF;
        PERFORM pg_extension_config_dump(member.oid, condition);
    END LOOP;
END $$;
