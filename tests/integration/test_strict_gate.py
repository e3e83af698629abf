"""The strict gate on Spider dev: the count that the paper's reference code comes to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg import sql

from coret_pg import Coret
from coret_pg.offline.catalog import sync_catalog
from coret_pg.offline.compatibility import renew_inclusions, set_scoring
from coret_pg.offline.profile import profile_table
from coret_pg.offline.source import PoolTable, PostgresSource


def declared_types(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """The type of each column as its SQLite file declares it."""
    for file in sorted(folder.glob("*.sqlite")):
        with closing(sqlite3.connect(file)) as source:
            for (table,) in source.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ):
                for column in source.execute("SELECT * FROM pragma_table_info(?)", [table]):
                    yield file.stem, table, column[1], column[2].lower()


def test_as_many_pairs_as_the_reference(dsn: str, bench_data: Path) -> None:
    folder = bench_data / "spider" / "databases" / "dev"
    with Coret(dsn) as coret, psycopg.connect(dsn, autocommit=True) as connection:
        coret.load(folder, keys=False)
        coret.init()
        loaded = {
            (schema, table, column): type_name
            for schema, table, column, type_name in connection.execute(
                "SELECT nspname, relname, attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace"
                " WHERE attnum > 0 AND nspname <> 'coret' AND nspname !~ '^pg_' AND relkind = 'r'"
            ).fetchall()
        }
        # Loading makes one type of INT and INTEGER; the reference keeps all declared types apart. So each
        # gets a domain of its name, over the type it was loaded as.
        connection.execute("CREATE SCHEMA declared; SET search_path = declared")
        made: set[tuple[str, str]] = set()
        changes: dict[tuple[str, str], list[sql.Composed]] = {}
        for schema, table, column, declared in declared_types(folder):
            base = loaded[schema, table, column]
            # The reference compares floats too; ours have no keys, but decimals have.
            base = "numeric" if base == "double precision" else base
            domain = sql.Identifier("declared", f"{declared} over {base}")
            if (declared, base) not in made:
                made.add((declared, base))
                connection.execute(
                    sql.SQL("CREATE DOMAIN {} AS {}").format(domain, sql.SQL(base))  # type: ignore[arg-type]
                )
            changes.setdefault((schema, table), []).append(
                sql.SQL("ALTER COLUMN {} TYPE {}").format(sql.Identifier(column), domain)
            )
        for (schema, table), parts in changes.items():
            connection.execute(
                sql.SQL("ALTER TABLE {} {}").format(
                    sql.Identifier(schema, table), sql.SQL(", ").join(parts)
                )
            )
        with closing(PostgresSource(coret.database, 1)) as source:
            sync_catalog(connection, source)
            tables = connection.execute(
                "SELECT table_id, schema_name, table_name, kind, estimated_rows FROM coret.catalog_table"
            ).fetchall()
            assert len(tables) == 80
            for row in tables:
                profile_table(connection, source, PoolTable(*row))
        ids = [row[0] for row in tables]
        renew_inclusions(connection, ids, ids)
        count = "SELECT count(*), count(*) FILTER (WHERE c.type_name LIKE '%%real%%') FROM coret.scored_pairs(%s) JOIN coret.catalog_column c ON c.column_id = sub_column"
        set_scoring(connection, "families", 0)
        (by_families, _) = connection.execute(count, [ids]).fetchone() or (0, 0)
        set_scoring(connection, "strict", 0)
        assert connection.execute(count, [ids]).fetchone() == (1403, 6)
        assert by_families > 1403
