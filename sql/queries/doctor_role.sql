-- The role, and what it may do with coret's schema; schema_owner is NULL where there is no schema.
SELECT quote_ident(current_user) AS role, quote_ident(current_database()) AS database,
       has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
       quote_ident(pg_get_userbyid(n.nspowner)) AS schema_owner,
       pg_has_role(n.nspowner, 'USAGE') AS owns_schema
FROM (SELECT) AS always LEFT JOIN pg_namespace AS n ON n.nspname = 'coret'
