-- One line in the ledger of calls to a chat model; a retrieval is tied to it once it is logged.
INSERT INTO coret.llm_call (use, table_id, endpoint, model_name, prompt_hash, prompt_tokens, completion_tokens, seconds, outcome)
VALUES (%(use)s, %(table_id)s, %(endpoint)s, %(model_name)s, %(prompt_hash)s, %(prompt_tokens)s, %(completion_tokens)s, %(seconds)s, %(outcome)s)
RETURNING call_id
