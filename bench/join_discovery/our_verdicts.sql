-- Which of a sample of pairs pass: those listed that are among ours.
SELECT low, high FROM our_pair
WHERE (low, high) IN (SELECT l, h FROM unnest(%(lows)s::bigint[], %(highs)s::bigint[]) AS asked(l, h))
