-- One line in the log of retrievals.
INSERT INTO coret.retrieval (question, k, tau, path, path_reason, model_id, chat_model, warnings, seconds, is_connected, asked_by)
VALUES (%(question)s, %(k)s, %(tau)s, %(path)s, %(path_reason)s, %(model_id)s, %(chat_model)s,
    %(warnings)s, %(seconds)s, %(is_connected)s, coret.reader_name())
RETURNING retrieval_id
