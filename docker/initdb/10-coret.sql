-- The extensions, and the role that the worker logs in as.
CREATE EXTENSION vector;
-- Questions from SQL (coret.retrieve) wait for their answer over a connection of their own.
CREATE EXTENSION dblink;
CREATE EXTENSION coret;

-- Trailing line ends are not part of it.
\set worker_password `cat /run/secrets/worker_password`
CREATE ROLE coret_service LOGIN PASSWORD :'worker_password';
-- It answers for others, refreshes, and so reads every table; it writes in the schema coret alone.
GRANT coret_worker, coret_refresher, pg_read_all_data TO coret_service;
