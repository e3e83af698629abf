-- Columns of a schema whose values mostly differ, by the planner's statistics: a hint of how to read them, no fact. Run in the source.
SELECT tablename, attname FROM pg_stats WHERE schemaname = %s AND n_distinct <= -0.5
