"""Coherent table retrieval for text-to-SQL, inside Postgres."""

__version__ = "0.1.0"
