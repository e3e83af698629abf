-- The tables that hold each of some phrases as a value, or as the first words of one.
SELECT phrase, table_ids FROM coret.tables_holding(%(phrases)s::text[])
