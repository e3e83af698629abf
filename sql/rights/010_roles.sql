-- The roles that rights are given to. Nobody logs in as one of them: GRANT coret_reader TO analyst.
-- Where whoever installs may not create roles, the schema works for its owner alone until somebody
-- who may has created them and `coret init` has run again.
DO $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('coret_reader', 'Asks coret questions; sees of the catalog what it may SELECT.'),
            ('coret_worker', 'Answers questions that come from SQL, each with the rights of who asked it.'),
            ('coret_refresher', 'Refreshes the catalog of coret, and so sees all of it.'),
            ('coret_admin', 'Sets policies of samples and verdicts on joins; refreshes and answers.')) AS w(name, purpose)
    LOOP
        IF to_regrole(wanted.name) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted.name);
            EXECUTE format('COMMENT ON ROLE %I IS %L', wanted.name, wanted.purpose);
        END IF;
    END LOOP;
    -- Each sees what the ones before may.
    EXECUTE 'GRANT coret_reader TO coret_worker';
    EXECUTE 'GRANT coret_reader TO coret_refresher';
    EXECUTE 'GRANT coret_refresher, coret_worker TO coret_admin';
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'coret: the roles coret_reader, coret_worker, coret_refresher and coret_admin are not all there, and % may not create or grant them', current_user;
END $$;
