-- Drop every policy, view and function of ours, whatever order they depend in; never what others built on them.
DO $$
DECLARE
    statement text;
    failed boolean;
    progress boolean;
BEGIN
    -- They call our functions. What they opened stays closed until they are made anew.
    FOR statement IN
        SELECT format('DROP POLICY %I ON %s', p.polname, p.polrelid::regclass) FROM pg_policy AS p
        JOIN pg_class AS c ON c.oid = p.polrelid WHERE c.relnamespace = 'coret'::regnamespace
    LOOP
        EXECUTE statement;
    END LOOP;
    -- Without policies even the owner would see no row.
    FOR statement IN
        SELECT format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY', c.oid::regclass) FROM pg_class AS c
        WHERE c.relnamespace = 'coret'::regnamespace AND c.relkind = 'r' AND c.relrowsecurity
    LOOP
        EXECUTE statement;
    END LOOP;
    LOOP
        failed := false;
        progress := false;
        FOR statement IN
            SELECT format('DROP VIEW %s', c.oid::regclass) FROM pg_class AS c
            WHERE c.relnamespace = 'coret'::regnamespace AND c.relkind = 'v'
            UNION ALL
            SELECT format('DROP ROUTINE %s', p.oid::regprocedure) FROM pg_proc AS p
            WHERE p.pronamespace = 'coret'::regnamespace
        LOOP
            BEGIN
                EXECUTE statement;
                progress := true;
            EXCEPTION WHEN dependent_objects_still_exist THEN
                failed := true;
            END;
        END LOOP;
        EXIT WHEN NOT failed;
        IF NOT progress THEN
            RAISE EXCEPTION 'coret: objects outside the schema coret depend on its functions or views, so it cannot be changed'
                USING HINT = 'Drop those objects (see pg_depend), then run "coret init" again.', ERRCODE = 'dependent_objects_still_exist';
        END IF;
    END LOOP;
END $$;
