"""What join discovery costs, against the other ways of doing it, on the same generated pools.

    python -m bench.join_discovery --tables 200 --tables 1000 [--methods ours,desbordante]

Run it from the checkout; requirements/bench.in says what it needs. Each size is a pool built
from a seed in a database of its own, which every method reads in the same run and in a process
of its own. Every method has to find the same column pairs: one of two columns unique, both of
one declared type and of different tables, the distinct values of one all among the other's.
The pools hold only what makes this one definition for all: one declared type a family, amounts
with a fraction, no timestamp at midnight, no empty text, no column without a value.

- `ours`: catalog, profile ("staging"), inclusion, scoring; without embeddings, so that headers
  compare by their words alone.
- `reference`: for a column pair, a DISTINCT query a column, compared in Python; on a sample of
  all pairs of one type, extrapolated. That the sides' uniqueness is known is given for free.
- `python`: every column's distinct values once, as sets of texts; all pairs, by set inclusion.
- `duckdb`: CSV files into an in-memory database, a self-join on values.
- `desbordante`: its Spider over the same files, load and run. It knows no uniqueness and no
  types: both are applied afterwards, unmeasured. A NULL is a value to it, so each file ends
  with a row of NULLs, which makes every column hold that value.

What writing the files costs stands in a row of its own ("export") and in no method's figures.

CPU is that of the method's process (client) and of every process of the server, background ones
included. Memory is the client's greatest resident size, interpreter and libraries included, and
the greatest sum of the server processes' proportional sizes, sampled ten times a second, shared
buffers included; the server's matters only to methods that use it. The server has to run on this
machine, under Linux. The exit status is 1 where a method failed or found other pairs than ours.
"""
