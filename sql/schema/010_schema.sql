-- The one schema coret_pg writes to. User tables are only ever read.
DO $$
BEGIN
    -- CREATE SCHEMA IF NOT EXISTS would ask for the privilege even where the schema is there.
    IF to_regnamespace('coret') IS NULL THEN
        CREATE SCHEMA coret;
        COMMENT ON SCHEMA coret IS
            'coret_pg: coherent table retrieval for text-to-SQL. Holds the catalog of the pool, column profiles, purposes, embeddings, compatibility and the log of retrievals; user tables are only read.';
    END IF;
END $$;
