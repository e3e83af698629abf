-- What is known of a table's columns when its purpose is written.
SELECT c.column_name, c.type_family, c.column_comment,
       EXISTS (SELECT FROM coret.declared_key AS k
               WHERE k.table_id = c.table_id AND k.kind = 'primary' AND c.attnum = ANY (k.attnums)) AS is_key
FROM coret.catalog_column AS c
WHERE c.table_id = %(table_id)s ORDER BY c.attnum
