-- Whose rights count: who asks, what that role may read, and how a worker acts for it.

CREATE OR REPLACE FUNCTION coret.reader() RETURNS oid
LANGUAGE sql STABLE
-- Asked very often: no table is read for it.
RETURN CASE WHEN current_user = 'coret_worker' THEN to_regrole(quote_ident(current_setting('coret.reader', true)))
            ELSE to_regrole(quote_ident(current_user)) END::oid;
COMMENT ON FUNCTION coret.reader() IS
    'The role whose rights count: the current one, or, in a worker''s hands (role coret_worker), the one it answers, named by the setting coret.reader; NULL, who may see nothing, where that names none.';

CREATE OR REPLACE FUNCTION coret.reader_name() RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN current_user = 'coret_worker' THEN current_setting('coret.reader', true) ELSE current_user::text END;
COMMENT ON FUNCTION coret.reader_name() IS 'The name of the role whose rights count (coret.reader).';

CREATE OR REPLACE FUNCTION coret.rows_are_filtered(table_oid oid, reader oid DEFAULT coret.reader()) RETURNS boolean
LANGUAGE sql STABLE
RETURN coalesce((
    -- Of most tables nothing need be known of the reader.
    SELECT CASE WHEN NOT c.relrowsecurity AND c.relkind <> 'v' THEN false
                WHEN (SELECT r.rolsuper OR r.rolbypassrls FROM pg_roles AS r WHERE r.oid = reader) THEN false
                WHEN c.relrowsecurity THEN c.relforcerowsecurity OR NOT pg_has_role(reader, c.relowner, 'USAGE')
                ELSE EXISTS (
                    -- What the view reads, through other views too, and with whose rights.
                    WITH RECURSIVE seen AS (
                        SELECT c.oid AS oid, NULL::oid AS by_role
                        UNION
                        SELECT d.refobjid, v.relowner
                        FROM seen AS s JOIN pg_class AS v ON v.oid = s.oid AND v.relkind = 'v'
                        JOIN pg_rewrite AS w ON w.ev_class = v.oid
                        JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
                    )
                    SELECT FROM seen AS s JOIN pg_class AS x ON x.oid = s.oid
                    -- Such a view reads its tables with its reader's rights, whatever these are there,
                    -- also where another view reads it.
                    WHERE x.relkind = 'v' AND EXISTS (SELECT FROM pg_options_to_table(x.reloptions) AS o
                                                      WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)
                       -- A policy may look at who asks, whoever the view belongs to.
                       OR x.relrowsecurity AND s.by_role IS NOT NULL AND (x.relforcerowsecurity OR NOT pg_has_role(s.by_role, x.relowner, 'USAGE'))) END
    FROM pg_class AS c WHERE c.oid = table_oid), true);
COMMENT ON FUNCTION coret.rows_are_filtered(oid, oid) IS
    'Whether row-level security, or a view with the reader''s rights, may hide rows of a table from a reader: then no value of it is shown.';

CREATE OR REPLACE FUNCTION coret.reads_table(table_oid oid, reader oid DEFAULT coret.reader()) RETURNS boolean
LANGUAGE sql STABLE
-- False also where the table or the reader is gone.
RETURN coalesce(has_any_column_privilege(reader, table_oid, 'SELECT')
                AND has_schema_privilege(reader, (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = table_oid), 'USAGE'), false);
COMMENT ON FUNCTION coret.reads_table(oid, oid) IS 'Whether a reader may SELECT a table of this database, or one of its columns.';

CREATE OR REPLACE FUNCTION coret.reads_whole(table_oid oid, reader oid DEFAULT coret.reader()) RETURNS boolean
LANGUAGE sql STABLE
RETURN NOT coret.rows_are_filtered(table_oid, reader) AND (
    coalesce(has_table_privilege(reader, table_oid, 'SELECT'), false)
    OR NOT EXISTS (SELECT FROM pg_attribute AS a
                   WHERE a.attrelid = table_oid AND a.attnum > 0 AND NOT a.attisdropped
                     AND has_column_privilege(reader, table_oid, a.attnum, 'SELECT') IS NOT TRUE));
COMMENT ON FUNCTION coret.reads_whole(oid, oid) IS 'Whether a reader may read every column and every row of a table.';

CREATE OR REPLACE FUNCTION coret.sees_all(reader oid DEFAULT coret.reader()) RETURNS boolean
LANGUAGE sql STABLE
RETURN coalesce((SELECT pg_has_role(reader, r.oid, 'USAGE') FROM pg_roles AS r WHERE r.rolname = 'coret_refresher'), false)
       OR coalesce((SELECT pg_has_role(reader, n.nspowner, 'USAGE') FROM pg_namespace AS n WHERE n.nspname = 'coret'), false);
COMMENT ON FUNCTION coret.sees_all(oid) IS
    'Whether a role keeps the catalog itself (it owns the schema, or is a member of coret_refresher) and so sees all of it.';

CREATE OR REPLACE VIEW coret.seal WITH (security_barrier) AS
    -- Functions in a view run as its reader, its tables are read as its owner: so a role gets a
    -- seal for its own name, and cannot make one for another.
    SELECT encode(sha256(k.secret || sha256(k.secret || convert_to(concat_ws('/', pg_backend_pid(), extract(epoch FROM transaction_timestamp()), current_user), 'UTF8'))), 'hex')
           || current_user AS seal
    FROM coret.seal_key AS k;
COMMENT ON VIEW coret.seal IS
    'Proof, good for this transaction, of which role reads it: functions with their owner''s rights take it, since they cannot see who called them.';

CREATE OR REPLACE FUNCTION coret.sealed_role(seal text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM coret.seal_key AS k
               WHERE seal = encode(sha256(k.secret || sha256(k.secret || convert_to(
                   concat_ws('/', pg_backend_pid(), extract(epoch FROM transaction_timestamp()), substr(seal, 65)), 'UTF8'))), 'hex') || substr(seal, 65)) THEN
        RETURN substr(seal, 65);
    END IF;
    RAISE EXCEPTION 'coret: the seal is not of this transaction'
        USING HINT = 'Pass what coret.seal shows: (SELECT seal FROM coret.seal).', ERRCODE = 'insufficient_privilege';
END $$;
COMMENT ON FUNCTION coret.sealed_role(text) IS 'The role that a seal (coret.seal) was made for; an error unless it was made in this transaction.';

CREATE OR REPLACE FUNCTION coret.sealed_reader(seal text) RETURNS oid
LANGUAGE sql STABLE
RETURN (SELECT r.oid FROM (SELECT coret.sealed_role(seal) AS name) AS s
        JOIN pg_roles AS r ON r.rolname = CASE s.name WHEN 'coret_worker' THEN current_setting('coret.reader', true) ELSE s.name END);
COMMENT ON FUNCTION coret.sealed_reader(text) IS 'What coret.reader is for the role that a seal was made for.';

-- What policies ask. In PL/pgSQL, which keeps its plans: written into the policies, they would be
-- planned anew wherever a table is mentioned, at many times the cost of looking. COST: rather by index, row by
-- row, than for every row of a table.
CREATE OR REPLACE FUNCTION coret.sees_columns(column_ids bigint[]) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT COST 10000 AS $$
BEGIN
    -- Row-level security leaves out those the reader may not read.
    RETURN NOT EXISTS (SELECT FROM unnest(column_ids) AS n(column_id)
                       WHERE NOT EXISTS (SELECT FROM coret.catalog_column AS c WHERE c.column_id = n.column_id));
END $$;
COMMENT ON FUNCTION coret.sees_columns(bigint[]) IS 'Whether the reader may SELECT all of some columns.';

CREATE OR REPLACE FUNCTION coret.sees_column(of_column bigint) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT COST 10000 AS $$
BEGIN
    RETURN EXISTS (SELECT FROM coret.catalog_column AS c WHERE c.column_id = of_column);
END $$;
COMMENT ON FUNCTION coret.sees_column(bigint) IS 'Whether the reader may SELECT a column.';

CREATE OR REPLACE FUNCTION coret.sees_values(of_column bigint, reader oid) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT COST 10000 AS $$
BEGIN
    RETURN EXISTS (SELECT FROM coret.catalog_column AS c JOIN coret.catalog_table AS t USING (table_id)
                   WHERE c.column_id = of_column AND NOT coret.rows_are_filtered(t.table_oid, reader));
END $$;
COMMENT ON FUNCTION coret.sees_values(bigint, oid) IS 'Whether the reader may SELECT a column, and no row of it is hidden from that role.';

CREATE OR REPLACE FUNCTION coret.sees_key(of_table bigint, attnums smallint[]) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT COST 10000 AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM unnest(attnums) AS n(attnum)
                       WHERE NOT EXISTS (SELECT FROM coret.catalog_column AS c WHERE c.table_id = of_table AND c.attnum = n.attnum));
END $$;
COMMENT ON FUNCTION coret.sees_key(bigint, smallint[]) IS 'Whether the reader may SELECT all columns of a key.';

CREATE OR REPLACE FUNCTION coret.sees_purpose(of_table bigint, by_person boolean, reader oid) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT COST 10000 AS $$
BEGIN
    -- A text about all columns and rows is for who reads all of them; a person's own words need less.
    RETURN EXISTS (SELECT FROM coret.catalog_table AS t
                   WHERE t.table_id = of_table AND (by_person OR coret.reads_whole(t.table_oid, reader)));
END $$;
COMMENT ON FUNCTION coret.sees_purpose(bigint, boolean, oid) IS 'Whether the reader may see what is written of a table: by a person, or from all it holds.';
