"""Databases of the benchmarks' own, made anew on the server they measure."""

from __future__ import annotations

import psycopg
from psycopg import conninfo, sql


def make_database(server: psycopg.Connection, name: str) -> str:
    """Make a database anew and return its conninfo; an earlier one of the name is dropped.

    `server` is a connection in autocommit to any other database of the server.
    """
    drop_database(server, name)
    server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return conninfo.make_conninfo(
        server.info.dsn, dbname=name, password=server.info.password or None
    )


def drop_database(server: psycopg.Connection, name: str) -> None:
    """Drop a database, if it is there, with the sessions in it."""
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
