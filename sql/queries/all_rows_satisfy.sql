-- Whether every non-NULL value of a column meets a condition (false where there is none). Run in the source.
SELECT coalesce(bool_and({condition}), false) FROM {table}
