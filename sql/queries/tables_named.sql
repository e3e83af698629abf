-- Tables whose name, without what stands between its words, is one of some names.
SELECT t.table_id, t.table_name FROM coret.catalog_table AS t WHERE t.plain_name = ANY (%(names)s::text[] COLLATE "C")
