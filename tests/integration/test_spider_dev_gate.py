"""The gate on Spider dev: against its files, and the count that the paper's reference code comes to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from coret_pg import Coret
from coret_pg.offline.compatibility import renew_inclusions, set_scoring
from coret_pg.offline.source import PostgresSource
from tests.pools import KeyColumn, passing_pairs, profile_all


def _as_loaded(type_name: str, value: object) -> object:
    """A value of a SQLite file as it compares once it is loaded as a type."""
    if type_name == "bigint":
        return int(str(value))
    if type_name.startswith("numeric"):
        number = Decimal(str(value))
        return int(number) if number == int(number) else number.normalize()
    return str(value)


def test_spider_dev_equals_sets_read_from_its_files(dsn: str, bench_data: Path) -> None:
    folder = bench_data / "spider" / "databases" / "dev"
    with Coret(dsn) as coret, psycopg.connect(dsn) as connection:
        coret.load(folder, keys=False)
        coret.init()
        with coret.database.session(autocommit=True) as session:
            source = PostgresSource(coret.database, 1)
            table_ids = profile_all(session, source)
            source.close()
            renew_inclusions(session, table_ids, table_ids)
        loaded = connection.execute(
            "SELECT schema_name, table_name, column_name, type_name, type_family, column_id"
            " FROM coret.catalog_column JOIN coret.catalog_table USING (table_id) WHERE type_family IS NOT NULL"
        ).fetchall()
        found = {
            frozenset(pair): jaccard
            for *pair, jaccard in connection.execute(
                "SELECT sub_column, sup_column, jaccard FROM coret.scored_pairs(%s)", [table_ids]
            )
        }
    columns = {}
    for schema, table, column, type_name, family, column_id in loaded:
        with closing(sqlite3.connect(folder / f"{schema}.sqlite")) as file:
            file.text_factory = lambda text: text.decode("utf-8", "replace")
            rows = file.execute(f'SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL')
            values = [_as_loaded(type_name, value) for (value,) in rows]
        if family == "decimal" and all(isinstance(value, int) for value in values):
            family = "integer"
        columns[column_id] = KeyColumn((schema, table), family, values)
    expected = passing_pairs(columns)
    assert len(expected) > 2_000
    assert found == pytest.approx(expected)


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
            ids = profile_all(connection, source)
        assert len(ids) == 80
        renew_inclusions(connection, ids, ids)
        count = "SELECT count(*), count(*) FILTER (WHERE c.type_name LIKE '%%real%%') FROM coret.scored_pairs(%s) JOIN coret.catalog_column c ON c.column_id = sub_column"
        set_scoring(connection, "families", 0)
        (by_families, _) = connection.execute(count, [ids]).fetchone() or (0, 0)
        set_scoring(connection, "strict", 0)
        assert connection.execute(count, [ids]).fetchone() == (1403, 6)
        assert by_families > 1403
