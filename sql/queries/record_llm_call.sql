-- One line in the ledger of calls to a chat model; a retrieval is tied to it once it is logged.
INSERT INTO coret.llm_call (use, table_id, endpoint, model_name, prompt_hash, prompt, prompt_tokens, completion_tokens, seconds, outcome, asked_by)
VALUES (%(use)s, %(table_id)s, %(endpoint)s, %(model_name)s, %(prompt_hash)s, %(prompt)s, %(prompt_tokens)s, %(completion_tokens)s, %(seconds)s, %(outcome)s, coret.reader_name())
RETURNING call_id
