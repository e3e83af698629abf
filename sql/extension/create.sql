-- What an installation needs before the tables: an empty schema, and a place for its revision.
DO $$
BEGIN
    -- Where CASCADE puts it for a role of the name coret, whose schema of that name is there by now.
    IF EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'vector' AND e.extnamespace = 'coret'::regnamespace) THEN
        RAISE EXCEPTION 'coret: the extension vector may not be in the schema coret'
            USING HINT = 'Put it elsewhere first: CREATE EXTENSION vector SCHEMA public; then CREATE EXTENSION coret;', ERRCODE = 'duplicate_schema';
    END IF;
    -- Nothing that others put there may become part of the extension, or be called by it.
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = 'coret'::regnamespace
               UNION ALL SELECT FROM pg_proc AS p WHERE p.pronamespace = 'coret'::regnamespace
               UNION ALL SELECT FROM pg_type AS t WHERE t.typnamespace = 'coret'::regnamespace) THEN
        RAISE EXCEPTION 'coret: the schema coret of this database is not empty'
            USING HINT = 'A schema made by "coret init" is kept up by "coret init"; it needs no extension. Else drop what is in the schema first.',
                  ERRCODE = 'duplicate_schema';
    END IF;
END $$;

-- As alembic makes it.
CREATE TABLE coret.schema_version (version_num varchar(32) NOT NULL CONSTRAINT schema_version_pkc PRIMARY KEY);
