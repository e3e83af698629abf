-- Whether no value comes twice; NULLs are no values.
SELECT count({column}) = count(DISTINCT {column}) FROM {relation}
