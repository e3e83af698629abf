-- ------------------------------------------------------------------
-- The log of retrievals, and the ledger of calls to a chat model.
-- ------------------------------------------------------------------
CREATE TABLE coret.retrieval (
    retrieval_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    question      text NOT NULL,
    k             integer NOT NULL,
    tau           real NOT NULL,
    path          text NOT NULL CHECK (path IN ('llm', 'no-llm', 'fallback')),
    path_reason   text,
    model_id      smallint REFERENCES coret.embedding_model ON DELETE SET NULL,
    chat_model    text,
    warnings      text[] NOT NULL DEFAULT '{}',
    seconds       jsonb NOT NULL DEFAULT '{}',
    asked_by      text NOT NULL DEFAULT current_user,
    asked_at      timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE coret.retrieval IS 'Every question asked, with the path its answer took.';
COMMENT ON COLUMN coret.retrieval.path IS 'llm: a chat model selected; no-llm: none is configured; fallback: the chat model failed, path_reason says why.';
COMMENT ON COLUMN coret.retrieval.seconds IS 'Seconds spent in each stage.';

CREATE TABLE coret.retrieval_table (
    retrieval_id bigint NOT NULL REFERENCES coret.retrieval ON DELETE CASCADE,
    rank         integer NOT NULL,
    table_id     bigint REFERENCES coret.catalog_table ON DELETE SET NULL,
    schema_name  text NOT NULL,
    table_name   text NOT NULL,
    relevance    real NOT NULL,
    role         text NOT NULL CHECK (role IN ('selected', 'added by compatibility', 'added by expansion', 'not chosen')),
    partner      text,
    PRIMARY KEY (retrieval_id, rank)
);
CREATE INDEX retrieval_table_table_id ON coret.retrieval_table (table_id);
COMMENT ON TABLE coret.retrieval_table IS 'The candidates of a retrieval, in order of relevance, and what became of each.';
COMMENT ON COLUMN coret.retrieval_table.partner IS 'Qualified name of the table that brought an added one in.';

CREATE TABLE coret.llm_call (
    call_id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    use               text NOT NULL CHECK (use IN ('purpose', 'selection')),
    retrieval_id      bigint REFERENCES coret.retrieval ON DELETE SET NULL,
    table_id          bigint REFERENCES coret.catalog_table ON DELETE SET NULL,
    endpoint          text NOT NULL,
    model_name        text NOT NULL,
    prompt_hash       text NOT NULL,
    prompt_tokens     integer,
    completion_tokens integer,
    seconds           real NOT NULL,
    outcome           text NOT NULL,
    called_at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX llm_call_retrieval_id ON coret.llm_call (retrieval_id);
CREATE INDEX llm_call_table_id ON coret.llm_call (table_id);
COMMENT ON TABLE coret.llm_call IS 'Ledger of calls to a chat model: what for, which model, tokens, seconds, outcome. Prompts are kept as a hash.';
COMMENT ON COLUMN coret.llm_call.endpoint IS 'Host and port; never credentials.';
COMMENT ON COLUMN coret.llm_call.outcome IS '"ok", or what went wrong.';
