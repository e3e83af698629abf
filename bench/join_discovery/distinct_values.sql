-- A column's distinct values as texts.
SELECT DISTINCT {column}::text COLLATE "C" FROM {relation} WHERE {column} IS NOT NULL
