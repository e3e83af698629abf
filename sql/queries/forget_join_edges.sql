-- Remove the joins of some tables, but those with tables that are looked at later.
DELETE FROM coret.join_edge
WHERE (child_table = ANY (%(changed)s::bigint[]) OR parent_table = ANY (%(changed)s::bigint[]))
  AND child_table <> ALL (%(later)s::bigint[]) AND parent_table <> ALL (%(later)s::bigint[])
