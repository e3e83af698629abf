-- One line in the log of retrievals; the ledger's call, if any, is tied to it.
WITH logged AS (
    INSERT INTO coret.retrieval (question, k, tau, path, path_reason, model_id, chat_model, warnings, seconds)
    VALUES (%(question)s, %(k)s, %(tau)s, %(path)s, %(path_reason)s, %(model_id)s, %(chat_model)s,
        %(warnings)s, %(seconds)s)
    RETURNING retrieval_id
),
tied AS (
    UPDATE coret.llm_call SET retrieval_id = logged.retrieval_id FROM logged WHERE call_id = %(call_id)s
)
SELECT retrieval_id FROM logged
