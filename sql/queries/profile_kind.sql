-- Whether a column has values and every one meets a condition; ends at the first that doesn't. Run in the source.
SELECT EXISTS (SELECT FROM {table} WHERE {column} IS NOT NULL) AND NOT EXISTS (SELECT FROM {table} WHERE NOT ({condition}))
