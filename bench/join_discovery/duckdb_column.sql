-- One column of the loaded table.
INSERT INTO cell SELECT DISTINCT {number}, "{name}" FROM loaded WHERE "{name}" IS NOT NULL;
INSERT INTO facts
SELECT {number}, {table}, '{type}', count(DISTINCT "{name}"), count("{name}") = count(DISTINCT "{name}") FROM loaded;
