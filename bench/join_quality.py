"""Compare the joins that coret believes with the keys that databases declare.

    python -m bench.join_quality DATA [--pool spider-open ...]

DATA is the benchmark's folder. Each pool is loaded without its keys, refreshed, and its joins are
compared with the keys the sources declare, as pairs of tables: no schema name and no declared key
is used. A key counts where both tables have rows ("all keys" counts the others too, of which no
value tells). Works in databases of its own (coret_bench_keys_...) on the server that CORET_DSN or
the libpq variables name, else on the embedded one.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from bench.databases import make_database
from coret_pg import Coret
from coret_pg.database.connection import Database
from coret_pg.settings import load_settings

TablePair = frozenset[str]
_RECALLS = (0.7, 0.75, 0.8, 0.85, 0.9)
# Loads a pool into a database and returns the keys its sources declare.
Loader = Callable[[Coret, Path], set[TablePair]]


@dataclass(frozen=True)
class Curve:
    """Precision and recall of pairs of tables, surest first."""

    found: Sequence[tuple[float, TablePair]]
    gold: set[TablePair]

    def points(self) -> Iterator[tuple[float, float, float]]:
        """Yield least confidence, precision and recall after each group of equal confidence."""
        right = 0
        for number, (confidence, pair) in enumerate(self.found, start=1):
            right += pair in self.gold
            if number == len(self.found) or self.found[number][0] < confidence:
                yield confidence, right / number, right / len(self.gold)

    def precision_at(self, recall: float) -> float | None:
        """Return the precision where the recall is first reached; None where it isn't."""
        return next((p for _, p, r in self.points() if r >= recall), None)

    def at(self, confidence: float) -> tuple[float, float]:
        """Return precision and recall of the pairs of at least this confidence."""
        reached = [(p, r) for c, p, r in self.points() if c >= confidence]
        return reached[-1] if reached else (1.0, 0.0)

    def average_precision(self) -> float:
        """Return the mean of the precisions at each right pair, 0 for those never found."""
        total, right = 0.0, 0
        for number, (_, pair) in enumerate(self.found, start=1):
            if pair in self.gold:
                right += 1
                total += right / number
        return total / len(self.gold)


def main() -> None:
    """Measure the pools asked for and print a table."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("data", type=Path, nargs="?", default=Path("../shared/bench"))
    arguments.add_argument("--pool", choices=list(POOLS), action="append")
    given = arguments.parse_args()
    write = sys.stdout.write
    heads = ", ".join(f"R {recall:.2f}" for recall in _RECALLS)
    write(
        "| pool | tables | measure | keys | AP | at 0.2: P / R | at 0.5: P / R | "
        f"precision at {heads} |\n|---|---:|---|---:|---:|---:|---:|---:|\n"
    )
    with Database(load_settings()) as server:
        for pool in given.pool or POOLS:
            name = f"coret_bench_keys_{pool.replace('-', '_')}"
            with server.session(autocommit=True) as connection:
                dsn = make_database(connection, name)
            with Coret(dsn, score_floor=0) as coret:
                declared = POOLS[pool](coret, given.data)
                coret.init()
                tables = coret.refresh().tables
                with coret.connection() as connection:
                    for measure, curve in curves(connection, declared):
                        write(f"| {pool} | {tables} | {_line(measure, curve)}\n")
            sys.stdout.flush()


def curves(connection: psycopg.Connection, declared: set[TablePair]) -> Iterator[tuple[str, Curve]]:
    """Yield what is measured on a refreshed pool, by name."""
    rows = dict(
        connection.execute(
            "SELECT lower(schema_name || '.' || table_name), max(coalesce(p.row_count, 0)) "
            "FROM coret.catalog_table JOIN coret.catalog_column USING (table_id) "
            "LEFT JOIN coret.column_profile AS p USING (column_id) GROUP BY 1"
        ).fetchall()
    )
    known = {pair for pair in declared if len(pair) == 2 and pair <= rows.keys()}
    filled = {pair for pair in known if all(rows[table] for table in pair)}
    confidences = _pairs(
        connection,
        "SELECT child_table, parent_table, confidence FROM coret.join_edge",
    )
    scores = _pairs(connection, "SELECT table_a, table_b, score FROM coret.compatibility")
    yield "confidence", Curve(confidences, filled)
    yield "confidence, all keys", Curve(confidences, known)
    yield "score", Curve(scores, filled)


def _line(measure: str, curve: Curve) -> str:
    at = " | ".join("{:.3f} / {:.3f}".format(*curve.at(least)) for least in (0.2, 0.5))
    precisions = [curve.precision_at(recall) for recall in _RECALLS]
    reached = ", ".join("-" if p is None else f"{p:.3f}" for p in precisions)
    return f"{measure} | {len(curve.gold)} | {curve.average_precision():.3f} | {at} | {reached} |"


def _pairs(connection: psycopg.Connection, statement: str) -> list[tuple[float, TablePair]]:
    names = dict(
        connection.execute(
            "SELECT table_id, lower(schema_name || '.' || table_name) FROM coret.catalog_table"
        ).fetchall()
    )
    best: dict[TablePair, float] = {}
    for a, b, value in connection.execute(statement.encode()).fetchall():
        pair = frozenset((names[a], names[b]))
        best[pair] = max(best.get(pair, 0.0), value)
    return sorted(((value, pair) for pair, value in best.items()), key=lambda item: -item[0])


def _spider(*parts: str) -> Loader:
    def load(coret: Coret, data: Path) -> set[TablePair]:
        folders = [data / "spider" / "databases" / part for part in parts]
        return set().union(*(_load_sqlite(coret, folder) for folder in folders))

    return load


def _mmqa(name: str) -> Loader:
    def load(coret: Coret, data: Path) -> set[TablePair]:
        declared = _spider("dev", "train")(coret, data)
        wanted = json.loads((data / "mmqa" / f"table_map_{name}.json").read_text(encoding="utf-8"))
        kept = {table.lower() for table in wanted.values()}
        with coret.database.session(autocommit=True) as connection:
            for schema, table in connection.execute(
                "SELECT schemaname, tablename FROM pg_tables "
                "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            ).fetchall():
                if f"{schema}.{table}".lower() not in kept:
                    connection.execute(
                        sql.SQL("DROP TABLE {} CASCADE").format(sql.Identifier(schema, table))
                    )
        return declared

    return load


def _superhero(coret: Coret, data: Path) -> set[TablePair]:
    return _load_sqlite(coret, data / "bird" / "databases")


def _samples(coret: Coret, data: Path) -> set[TablePair]:
    """Load the dumps with their keys, note these, and drop them."""
    coret.load(data / "postgres")
    with coret.database.session(autocommit=True) as connection:
        keys = connection.execute(
            "SELECT conname, conrelid::regclass::text, lower(a.nspname || '.' || child.relname), "
            "lower(b.nspname || '.' || parent.relname) "
            "FROM pg_constraint "
            "JOIN pg_class AS child ON child.oid = conrelid "
            "JOIN pg_namespace AS a ON a.oid = child.relnamespace "
            "JOIN pg_class AS parent ON parent.oid = confrelid "
            "JOIN pg_namespace AS b ON b.oid = parent.relnamespace "
            "WHERE contype = 'f' AND NOT child.relispartition"
        ).fetchall()
        for name, table, *_ in keys:
            connection.execute(
                sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
                    sql.SQL(table), sql.Identifier(name)
                )
            )
    return {frozenset(pair) for _, _, *pair in keys}


def _load_sqlite(coret: Coret, folder: Path) -> set[TablePair]:
    """Load a folder of SQLite files without keys; return the pairs of tables they declare."""
    coret.load(folder, keys=False)
    declared = set()
    for file in sorted(folder.rglob("*.sqlite")):
        schema = file.stem.lower()
        with closing(sqlite3.connect(file)) as source:
            for (table,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
                for key in source.execute("SELECT * FROM pragma_foreign_key_list(?)", [table]):
                    declared.add(
                        frozenset((f"{schema}.{table.lower()}", f"{schema}.{key[2].lower()}"))
                    )
    return declared


POOLS: Mapping[str, Loader] = {
    "spider-dev": _spider("dev"),
    "spider-open": _spider("dev", "train"),
    "mmqa-2": _mmqa("2table"),
    "mmqa-3": _mmqa("3table"),
    "superhero": _superhero,
    "postgres": _samples,
}


if __name__ == "__main__":
    main()
