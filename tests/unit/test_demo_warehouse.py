"""The demo warehouse: repeatable, full of traps, and its questions can be answered."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from coret_pg.demo import DIRTY_RELATIONS, QUESTIONS_FILE, build_warehouse
from coret_pg.errors import InputError

QUESTIONS = [json.loads(line) for line in QUESTIONS_FILE.read_text("utf-8").splitlines()]
DOMAINS = {"sales", "logistics", "hr", "clinic", "school", "streaming"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return build_warehouse(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="module")
def pool(files):
    """One connection that sees each file as a schema, as the pool will."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for path in files:
            connection.execute(f"ATTACH ? AS {path.stem}", (str(path),))
        yield connection


@pytest.fixture(scope="module")
def columns(pool):
    """{"schema.table": {column: declared type}}."""
    return {
        f"{schema}.{table}": {
            row[1]: row[2]
            for row in pool.execute("SELECT * FROM pragma_table_info(?, ?)", (table, schema))
        }
        for schema in sorted(DOMAINS)
        for (table,) in pool.execute(f"SELECT name FROM {schema}.sqlite_schema").fetchall()
    }


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def quoted(table: str) -> str:
    schema, _, name = table.partition(".")
    return f'{schema}."{name}"'


def values(pool, column: str) -> set:
    """The distinct non-NULL values of "schema.table.column"."""
    table, _, name = column.rpartition(".")
    rows = pool.execute(f'SELECT DISTINCT "{name}" FROM {quoted(table)}').fetchall()
    return {value for (value,) in rows if value is not None}


def is_surrogate_from_1(pool, table: str, column: str) -> bool:
    least, most, distinct, rows = pool.execute(
        f'SELECT MIN("{column}"), MAX("{column}"), COUNT(DISTINCT "{column}"), COUNT(*)'
        f" FROM {quoted(table)}"
    ).fetchone()
    return least == 1 and most == distinct == rows


def test_one_file_a_domain(files):
    assert {path.stem for path in files} == DOMAINS


def test_same_seed_same_content(files, tmp_path):
    again = build_warehouse(tmp_path)
    assert [dump(path) for path in again] == [dump(path) for path in files]


def test_content_is_the_same_everywhere(pool, columns):
    """Change the digest together with the data; it may not depend on Python or the platform."""
    digest = hashlib.sha256()
    for table in columns:
        for row in pool.execute(f"SELECT * FROM {quoted(table)} ORDER BY rowid"):
            digest.update(repr((table, row)).encode())
    assert digest.hexdigest()[:16] == "64583c04a6108a97"


def test_another_seed_other_content(files, tmp_path):
    others = build_warehouse(tmp_path, seed=21)
    for path, other in zip(files, others, strict=True):
        assert dump(path) != dump(other)


def test_rebuild_replaces_own_files(tmp_path):
    first = [dump(path) for path in build_warehouse(tmp_path, seed=21)]
    second = [dump(path) for path in build_warehouse(tmp_path)]
    assert first != second


@pytest.mark.parametrize("foreign", ["text", "sqlite"])
def test_foreign_file_is_left_alone(tmp_path, foreign):
    path = tmp_path / "sales.sqlite"
    if foreign == "text":
        path.write_text("not a database, and long enough to be read as a header of one" * 20)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE mine (a)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a file of the demo warehouse"):
        build_warehouse(tmp_path)
    assert path.read_bytes() == before


def test_size(pool, columns):
    rows = [
        pool.execute(f"SELECT COUNT(*) FROM {quoted(table)}").fetchone()[0] for table in columns
    ]
    assert 38 <= len(columns) <= 48
    assert 10_000 <= sum(rows) <= 20_000
    assert min(rows) > 0


def test_no_declared_keys(files):
    for path in files:
        with closing(sqlite3.connect(path)) as connection:
            statements = [
                sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema").fetchall()
            ]
        for statement in statements:
            assert statement.startswith("CREATE TABLE")
            for word in ("PRIMARY", "UNIQUE", "REFERENCES", "FOREIGN", "NOT NULL", "CHECK"):
                assert word not in statement.upper()


def test_surrogate_ids_from_1(pool, columns):
    tables = {
        table
        for table, kinds in columns.items()
        for column, kind in kinds.items()
        if kind == "INTEGER" and is_surrogate_from_1(pool, table, column)
    }
    assert len(tables) >= 15


def test_values_fit_declared_types(pool, columns):
    stored = {
        "INTEGER": {"integer"},
        "TEXT": {"text"},
        "DATE": {"text"},
        "DECIMAL(10,2)": {"integer", "real"},
        "REAL": {"real"},
        "BOOLEAN": {"integer"},
    }
    for table, kinds in columns.items():
        for column, kind in kinds.items():
            found = pool.execute(f'SELECT DISTINCT typeof("{column}") FROM {quoted(table)}')
            assert {name for (name,) in found} - {"null"} <= stored[kind], (table, column)
            if kind == "DATE":
                for day in values(pool, f"{table}.{column}"):
                    assert day == pool.execute("SELECT date(?)", (day,)).fetchone()[0]
            if kind == "BOOLEAN":
                assert values(pool, f"{table}.{column}") == {0, 1}


def test_relations_hold_except_the_dirty_ones(pool):
    joins = {tuple(join) for question in QUESTIONS for join in question["gold_joins"]}
    broken = {join for join in joins if not values(pool, join[0]) <= values(pool, join[1])}
    assert broken == DIRTY_RELATIONS
    for child, parent in DIRTY_RELATIONS:
        orphans = values(pool, child) - values(pool, parent)
        assert len(orphans) < len(values(pool, parent)) / 10


def test_parents_of_relations_are_unique(pool):
    parents = {join[1] for question in QUESTIONS for join in question["gold_joins"]}
    for parent in parents:
        table, _, _ = parent.rpartition(".")
        rows = pool.execute(f"SELECT COUNT(*) FROM {quoted(table)}").fetchone()[0]
        assert len(values(pool, parent)) == rows


def test_most_parents_are_not_all_used(pool):
    joins = {tuple(join) for question in QUESTIONS for join in question["gold_joins"]}
    partly = [join for join in joins if values(pool, join[1]) - values(pool, join[0])]
    assert len(partly) >= len(joins) * 0.8


def test_optional_foreign_keys_hold_nulls(pool):
    for column, parent in [
        ("sales.orders.delivery_address_id", "sales.addresses.address_id"),
        ("sales.customers.referred_by", "sales.customers.customer_id"),
        ("sales.categories.parent_category_id", "sales.categories.category_id"),
        ("logistics.tbl_shipment.carr_id", "logistics.tbl_carrier.carr_id"),
        ("hr.Employees.ManagerID", "hr.Employees.EmployeeID"),
        ("school.courses.teacher_id", "school.teachers.teacher_id"),
    ]:
        table, _, name = column.rpartition(".")
        nulls = f'SELECT COUNT(*) FROM {quoted(table)} WHERE "{name}" IS NULL'
        assert pool.execute(nulls).fetchone()[0] > 0
        assert values(pool, column) <= values(pool, parent)


@pytest.mark.parametrize(
    "column",
    [
        "sales.customers.email",
        "sales.addresses.city",
        "school.students.first_nm",
        "streaming.subscribers.email",
    ],
)
def test_some_values_are_untidy(pool, column):
    table, _, name = column.rpartition(".")
    found = [value for (value,) in pool.execute(f"SELECT {name} FROM {quoted(table)}")]
    untidy = [value for value in found if value != value.strip() or value == value.upper()]
    assert 0 < len(untidy) < len(found) / 20


def test_questions_are_spread(columns):
    assert 20 <= len(QUESTIONS) <= 26
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    domains = [question["gold_tables"][0].split(".")[0] for question in QUESTIONS]
    assert set(domains) == DOMAINS
    assert min(domains.count(domain) for domain in DOMAINS) >= 3
    sizes = [len(question["gold_tables"]) for question in QUESTIONS]
    assert min(sizes.count(size) for size in (1, 2, 3, 4)) >= 3


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_question(pool, columns, question):
    assert set(question) == {"id", "question", "gold_tables", "gold_joins", "gold_sql"}
    tables = set(question["gold_tables"])
    assert len(tables) == len(question["gold_tables"])
    assert tables <= set(columns)

    reached = {question["gold_tables"][0]}
    for _ in tables:
        for child, parent in question["gold_joins"]:
            ends = {child.rpartition(".")[0], parent.rpartition(".")[0]}
            assert ends <= tables
            if ends & reached:
                reached |= ends
    assert reached == tables

    parsed = sqlglot.parse_one(question["gold_sql"], read="postgres")
    assert {f"{table.db}.{table.name}" for table in parsed.find_all(exp.Table)} == tables
    answer = pool.execute(parsed.sql(dialect="sqlite")).fetchall()
    assert any(value for row in answer for value in row), "no rows, or only 0 and NULL"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_gold_sql_joins_on_the_gold_joins(question):
    parsed = sqlglot.parse_one(question["gold_sql"], read="postgres")
    tables = {
        table.alias_or_name: f"{table.db}.{table.name}" for table in parsed.find_all(exp.Table)
    }
    joined = {
        frozenset(f"{tables[side.table]}.{side.name}" for side in (equal.left, equal.right))
        for join in parsed.find_all(exp.Join)
        for equal in join.find_all(exp.EQ)
    }
    assert joined == {frozenset(join) for join in question["gold_joins"]}
