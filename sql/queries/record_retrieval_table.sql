-- A candidate of a retrieval, and what became of it.
INSERT INTO coret.retrieval_table (retrieval_id, rank, table_id, schema_name, table_name, relevance, role, partner)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
