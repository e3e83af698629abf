-- As fingerprint() of columns.py.
SELECT count(*), coalesce(sum(mixed * mixed % 2147483647), 0)::bigint
FROM (SELECT (low * 100003 + high) % 2147483647 AS mixed FROM our_pair) AS pair
