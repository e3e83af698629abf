-- How every script of the extension begins: names are found as `coret init` finds them.
SET LOCAL search_path = pg_catalog, @extschema:vector@, pg_temp;
SET LOCAL client_min_messages = warning;
