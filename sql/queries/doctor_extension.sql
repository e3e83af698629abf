-- An extension in this database: installed version and schema, version the server offers, whether the role may create it.
SELECT e.extversion AS installed, n.nspname AS schema_name, a.default_version AS offered,
       coalesce(r.rolsuper
                OR (has_database_privilege(current_database(), 'CREATE') AND (NOT v.superuser OR v.trusted)), false) AS may_create
FROM pg_roles AS r
LEFT JOIN pg_available_extensions AS a ON a.name = %(name)s
LEFT JOIN pg_available_extension_versions AS v ON v.name = a.name AND v.version = a.default_version
LEFT JOIN pg_extension AS e ON e.extname = %(name)s
LEFT JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE r.rolname = current_user
