-- The candidates of a retrieval, given as JSON, and what became of each.
INSERT INTO coret.retrieval_table (retrieval_id, rank, table_id, schema_name, table_name, relevance, role, partner,
    own_columns, partner_columns, confidence, reason)
SELECT %(retrieval_id)s, rank, table_id, schema_name, table_name, relevance, role, partner, own_columns, partner_columns, confidence, reason
FROM json_to_recordset(%(tables)s) AS t(rank integer, table_id bigint, schema_name text, table_name text, relevance real, role text,
    partner text, own_columns text[], partner_columns text[], confidence real, reason text)
