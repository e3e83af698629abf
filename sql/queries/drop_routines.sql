-- Drop every view and function of ours, whatever order they depend in; never what others built on them.
DO $$
DECLARE
    statement text;
    failed boolean;
    progress boolean;
BEGIN
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
