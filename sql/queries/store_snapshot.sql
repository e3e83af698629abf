-- Store a table's snapshot.
INSERT INTO coret.table_snapshot (table_id, column_names, sampled_rows, markdown, seed)
VALUES (%(table_id)s, %(column_names)s, %(sampled_rows)s, %(markdown)s, %(seed)s)
ON CONFLICT (table_id) DO UPDATE
SET column_names = excluded.column_names, sampled_rows = excluded.sampled_rows,
    markdown = excluded.markdown, seed = excluded.seed, taken_at = now()
