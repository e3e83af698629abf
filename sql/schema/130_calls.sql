-- ------------------------------------------------------------------
-- Calls from SQL that need a model: a caller leaves a request, a worker answers it.
-- ------------------------------------------------------------------
CREATE TABLE coret.request (
    request_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question    text NOT NULL,
    k           integer,
    tau         real,
    asked_by    text NOT NULL DEFAULT current_user,
    asked_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    deadline    timestamptz NOT NULL,
    state       text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'taken', 'answered', 'failed', 'cancelled')),
    taken_by    integer,
    taken_at    timestamptz,
    attempts    smallint NOT NULL DEFAULT 0,
    answer      jsonb,
    problem     text,
    remedy      text,
    answered_at timestamptz,
    waiter      bigint,
    CHECK ((state = 'answered') = (answer IS NOT NULL)),
    CHECK ((state = 'failed') = (problem IS NOT NULL))
);
CREATE INDEX request_waiting ON coret.request (request_id) WHERE state IN ('waiting', 'taken');
COMMENT ON TABLE coret.request IS 'Questions asked from SQL, until their answer is fetched; one that nobody fetches goes after a day.';
COMMENT ON COLUMN coret.request.k IS 'Candidates; NULL: what the worker is set to. tau likewise.';
COMMENT ON COLUMN coret.request.asked_by IS 'The role whose rights the answer keeps to: written by the server, never by the caller.';
COMMENT ON COLUMN coret.request.deadline IS 'Nobody waits for the answer after this.';
COMMENT ON COLUMN coret.request.taken_by IS 'The worker that answers it, by the process id of its session.';
COMMENT ON COLUMN coret.request.attempts IS 'How many workers took it: one that dies is replaced once.';
COMMENT ON COLUMN coret.request.waiter IS 'Key of the advisory lock that a call holds while it waits; once nobody holds it, nobody needs the answer. NULL: somebody will fetch it.';

CREATE TABLE coret.seal_key (
    secret     bytea NOT NULL,
    -- One row.
    is_the_one boolean PRIMARY KEY DEFAULT true CHECK (is_the_one)
);
-- gen_random_uuid() is made of strong random numbers.
INSERT INTO coret.seal_key (secret)
VALUES (sha256(decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')));
COMMENT ON TABLE coret.seal_key IS 'What coret.seal is made with: no role but the owner of the schema may read it.';

ALTER TABLE coret.retrieval ADD COLUMN is_connected boolean;
COMMENT ON COLUMN coret.retrieval.is_connected IS 'Whether joins hold the whole set together.';
COMMENT ON COLUMN coret.retrieval.asked_by IS 'The role that asked: it alone sees the line again, beside administrators.';

ALTER TABLE coret.retrieval_table
    DROP CONSTRAINT retrieval_table_role_check,
    ADD CONSTRAINT retrieval_table_role_check
        CHECK (role IN ('selected', 'added by compatibility', 'added by expansion', 'bridge', 'not chosen')),
    ADD COLUMN own_columns text[],
    ADD COLUMN partner_columns text[],
    ADD COLUMN confidence real,
    ADD COLUMN reason text;
COMMENT ON COLUMN coret.retrieval_table.role IS 'bridge: far from the question itself, chosen since it joins others of the set.';
COMMENT ON COLUMN coret.retrieval_table.partner IS 'Qualified name of the table it is joined to: the one that brought it in, else its surest neighbour.';
COMMENT ON COLUMN coret.retrieval_table.own_columns IS 'Columns it is joined by; partner_columns are the partner''s, in the same order.';
COMMENT ON COLUMN coret.retrieval_table.confidence IS 'How likely that join is meant, 0 to 1.';
COMMENT ON COLUMN coret.retrieval_table.reason IS 'Why the table is in the answer, in words.';

-- An index on an expression can't be used under row-level security; one on a column can.
DROP INDEX coret.catalog_table_plain_name;
ALTER TABLE coret.catalog_table
    ADD COLUMN plain_name text COLLATE "C" GENERATED ALWAYS AS (translate(lower(table_name), '_ -.', '')) STORED;
CREATE INDEX catalog_table_plain_name ON coret.catalog_table (plain_name);
COMMENT ON COLUMN coret.catalog_table.plain_name IS 'The name in lower case without what stands between its words: what the words of a question are looked up in.';

CREATE TABLE coret.routine_build (
    fingerprint  text NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT now(),
    -- One row.
    is_the_one   boolean PRIMARY KEY DEFAULT true CHECK (is_the_one)
);
COMMENT ON TABLE coret.routine_build IS 'Which build of functions, views and rights is installed: they are made anew by `coret init` only where another one is.';
