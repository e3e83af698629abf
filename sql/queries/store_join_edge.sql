-- Store a possible join that names and values speak for.
INSERT INTO coret.join_edge (child_table, parent_table, child_columns, parent_columns, evidence, name_fit, included, cardinality, is_sampled)
VALUES (%(child_table)s, %(parent_table)s, %(child_columns)s, %(parent_columns)s, 'inferred', %(name_fit)s, %(included)s, %(cardinality)s, %(is_sampled)s)
