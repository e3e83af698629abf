-- A column's distinct values, and whether none comes twice.
SELECT count(DISTINCT {column}), count({column}) = count(DISTINCT {column}) FROM {relation}
