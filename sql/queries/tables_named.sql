-- Tables whose name, without what stands between its words, is one of some names.
SELECT t.table_id, t.table_name FROM coret.catalog_table AS t
WHERE translate(lower(t.table_name), '_ -.', '') = ANY (%(names)s::text[])
