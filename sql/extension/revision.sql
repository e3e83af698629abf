-- Where coret_pg looks for the schema's revision.
DELETE FROM coret.schema_version;
INSERT INTO coret.schema_version (version_num) VALUES ('@revision@');
