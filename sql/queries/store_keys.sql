-- Store the keys of one column that is no interval.
INSERT INTO coret.column_keys (column_id, keys, probes)
VALUES (%(column_id)s, %(keys)s, coret.spread_probes(%(keys)s))
ON CONFLICT (column_id) DO UPDATE SET keys = excluded.keys, probes = excluded.probes
