-- The columns of a catalogued table.
SELECT column_id, column_name, type_name, type_family
FROM coret.catalog_column WHERE table_id = %(table_id)s ORDER BY attnum
