-- ------------------------------------------------------------------
-- Refresh: what was done for which table from which input, and the jobs that did it.
-- ------------------------------------------------------------------
CREATE TABLE coret.table_step (
    table_id    bigint NOT NULL REFERENCES coret.catalog_table ON DELETE CASCADE,
    step        text NOT NULL CHECK (step IN ('snapshot', 'profile', 'purpose', 'embedding', 'inclusion', 'compatibility')),
    input_hash  text NOT NULL,
    setting     text NOT NULL,
    problem     text,
    finished_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (table_id, step)
);
COMMENT ON TABLE coret.table_step IS 'The last outcome of each step for each table: a step is due where its input or its setting has changed.';
COMMENT ON COLUMN coret.table_step.input_hash IS 'What the step read, as coret.step_input hashes it.';
COMMENT ON COLUMN coret.table_step.setting IS 'How the step was set: model, seed, form of the text.';
COMMENT ON COLUMN coret.table_step.problem IS 'Why the step was skipped for this table (no privilege, time limit, lock ...); NULL when it succeeded.';

CREATE TABLE coret.job (
    job_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('refresh')),
    state       text NOT NULL CHECK (state IN ('running', 'finished', 'failed', 'abandoned')),
    started_by  text NOT NULL DEFAULT current_user,
    started_at  timestamptz NOT NULL DEFAULT now(),
    ended_at    timestamptz,
    problem     text
);
COMMENT ON TABLE coret.job IS 'Refresh jobs; "abandoned" is one whose process died, found by a later job.';

CREATE TABLE coret.job_step (
    job_id     bigint NOT NULL REFERENCES coret.job ON DELETE CASCADE,
    step       text NOT NULL,
    total      bigint NOT NULL,
    done       bigint NOT NULL DEFAULT 0,
    skipped    bigint NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    PRIMARY KEY (job_id, step)
);
COMMENT ON TABLE coret.job_step IS 'Progress of each step of a job, in tables (in column pairs'' tables for compatibility).';
