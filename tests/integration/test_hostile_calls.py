"""Hostile arguments to every function: each is a result or a clear error, and nothing changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests import roles
from tests.conftest import Server
from tests.fake_endpoint import FakeEndpoint
from tests.hostile import TEXTS, fingerprint
from tests.roles import as_role

_ODD = [float("nan"), float("inf"), float("-inf")]
NUMBERS: dict[str, list[Any]] = {
    "smallint": [0, 1, -1, 32767, -32768],
    "integer": [0, 1, -1, 7, 1000, 1001, 2**31 - 1, -(2**31)],
    "bigint": [0, 1, -1, 717000005, 2**63 - 1, -(2**63)],
    "real": [0.0, -0.0, 0.5, 1.0, -1.0, 3.4e38, 1e-45, *_ODD],
    "double precision": [0.0, 0.001, -1.0, 1e308, 5e-324, *_ODD],
    "oid": [0, 1, 2**32 - 1, 1259],
    "boolean": [True, False],
    "timestamp with time zone": ["epoch", "infinity", "-infinity", "4713-01-01 BC", "294276-12-31"],
    "vector": [
        "[1,0,0,0,0,0,0,0]", "[0,0,0,0,0,0,0,0]", "[1]", "[3e38,-3e38,1,1,1,1,1,1]", "[1e-45,0,0,0,0,0,0,0]",
        "[" + ",".join(["1"] * 4001) + "]",
    ],
    "jsonb": [
        "null", "{}", "[]", "1", '"x"', '{"tables": null}', '{"tables": 1}', '{"tables": [1, null, "x", {}]}', '{"tables": {"a": 1}}',
        '{"tables": [{"rank": "x"}]}', '{"tables": [{"rank": 1, "schema_name": "a\'; --", "table_name": "$$", "own_columns": ["%s"]}], "retrieval_id": 1}',
        '{"tables": [], "retrieval_id": "x"}', '{"tables": [{"rank": 1e99}]}',
    ],
}  # fmt: skip
NAMES_OF_QUINCETAB = {"orchard.quincetab", '"orchard"."quincetab"'}
# What a call may end with, besides a result. Internal errors (XX000), syntax errors of SQL that we
# put together (42601), and sessions that end are none of these.
CLEAN = {
    "22003",  # a number out of range
    "22023",  # an argument that makes no sense
    "2202E",  # arrays that don't belong together
    "22P02",  # a text that is no number, in JSON
    "42501",  # not allowed
    "42P01",  # no such table
    "P0002",  # nothing of yours
    "55000",  # no worker
}
# Its transactions are its own; it is called apart.
PROCEDURES = {"retrieve_call"}


@dataclass(frozen=True)
class Routine:
    """A function that readers may call."""

    name: str
    types: tuple[str, ...]

    @property
    def statement(self) -> bytes:
        arguments = ", ".join(f"%s::{type_name}" for type_name in self.types)
        return f"SELECT * FROM coret.{self.name}({arguments})".encode()


@pytest.fixture(scope="module")
def pool(embedded_server: Server) -> Iterator[str]:
    with (
        FakeEndpoint(default_text=roles.written_purpose) as endpoint,
        roles.new_database(embedded_server, "hostile_calls") as dsn,
    ):
        roles.make_pool(dsn, endpoint)
        yield dsn


@pytest.fixture
def reader(pool: str) -> Iterator[psycopg.Connection]:
    with as_role(pool, "full") as connection:
        # Whoever asks for too much waits, and is told so.
        connection.execute("SET statement_timeout = '20s'")
        yield connection


def routines(connection: psycopg.Connection) -> list[Routine]:
    """Return every function that the session may call, whatever is added to them."""
    rows = connection.execute(
        "SELECT p.proname, array(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a(t, place) ORDER BY place)"
        " FROM pg_proc p WHERE p.pronamespace = 'coret'::regnamespace AND p.prokind = 'f' AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1, p.oid"
    ).fetchall()
    return [Routine(name, tuple(types)) for name, types in rows]


def base_of(type_name: str) -> str:
    return type_name.removesuffix("[]")


def values_of(type_name: str) -> list[Any]:
    """Return hostile values of a type, NULL among them."""
    base = base_of(type_name)
    singles = TEXTS if base in ("text", "name") else NUMBERS[base]
    if type_name.endswith("[]"):
        arrays: list[Any] = [[], [None], [singles[0], None], singles, list(singles[:5]) * 20]
        return [None, *arrays, *([value] for value in singles)]
    return [None, *singles]


def strategy_of(type_name: str) -> st.SearchStrategy[Any]:
    base = base_of(type_name)
    one: st.SearchStrategy[Any] = st.sampled_from(TEXTS if base == "text" else NUMBERS[base])
    if base == "text":
        # NUL and lone surrogates can't be sent.
        sendable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
        one = one | st.text(sendable, max_size=40)
    one = st.none() | one
    return st.lists(one, max_size=4) if type_name.endswith("[]") else one


def call(connection: psycopg.Connection, routine: Routine, arguments: list[Any]) -> str | None:
    """Call a function; return the SQLSTATE it ends with, None for a result."""
    failed = None
    try:
        connection.execute(routine.statement, arguments).fetchall()
    except psycopg.Error as error:
        failed = error
    if failed is None:
        return None
    message = failed.diag.message_primary or str(failed)
    told = f"{routine.name}({[str(a)[:60] for a in arguments]}): {failed.sqlstate} {message}"
    assert failed.sqlstate in CLEAN, told
    assert not connection.closed, told
    return failed.sqlstate


@pytest.fixture
def unchanged(pool: str) -> Iterator[None]:
    before = fingerprint(pool)
    assert len(before) > 20
    yield
    assert fingerprint(pool) == before


@pytest.mark.usefixtures("unchanged")
def test_every_argument_of_every_function_takes_anything(reader: psycopg.Connection) -> None:
    """One argument after the other is hostile, the rest as they should be."""
    usual: dict[str, Any] = {
        "text": "orchard.quincetab", "integer": 3, "bigint": 717000005, "real": 0.5, "double precision": 0.01, "oid": 1259,
        "boolean": False, "smallint": 1, "vector": "[1,0,0,0,0,0,0,0]", "jsonb": "{}", "timestamp with time zone": "2020-01-01",
    }  # fmt: skip
    called = 0
    ends = set()
    for routine in routines(reader):
        for place, type_name in enumerate(routine.types):
            arguments = [
                [usual[base_of(t)]] if t.endswith("[]") else usual[base_of(t)]
                for t in routine.types
            ]
            for value in values_of(type_name):
                arguments[place] = value
                ends.add(call(reader, routine, arguments))
                called += 1
    assert called > 3_000
    assert {None, "42P01", "22023", "P0002", "55000", "42501"} <= ends


@pytest.mark.usefixtures("unchanged")
def test_all_arguments_are_hostile_at_once(reader: psycopg.Connection) -> None:
    every = [routine for routine in routines(reader) if routine.types]
    chosen = st.sampled_from(every).flatmap(
        lambda routine: st.tuples(st.just(routine), st.tuples(*map(strategy_of, routine.types)))
    )

    @settings(
        max_examples=400, deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(chosen)
    def each(drawn: tuple[Routine, tuple[Any, ...]]) -> None:
        call(reader, drawn[0], list(drawn[1]))

    each()


@pytest.mark.usefixtures("unchanged")
def test_the_procedure_takes_anything(reader: psycopg.Connection) -> None:
    known = reader.execute(
        "SELECT array_agg(proname::text) FROM pg_proc WHERE pronamespace = 'coret'::regnamespace AND prokind = 'p'"
    ).fetchone()
    assert known == ([*PROCEDURES],)
    states = set()
    for text in TEXTS:
        with pytest.raises(psycopg.Error) as caught:
            reader.execute("CALL coret.retrieve_call(%s, 3, 0.5, 1)", [text])
        states.add(caught.value.sqlstate)
        assert str(caught.value).startswith("coret: ")
    # Nothing, or too much, or nobody to answer it.
    assert states == {"22023", "55000"}


def test_results_of_hostile_texts_are_what_they_should_be(reader: psycopg.Connection) -> None:
    for text in TEXTS:
        row = reader.execute(
            "SELECT coret.qualified_name(%s, %s), format('%%I.%%I', %s::text, %s::text)", [text] * 4
        ).fetchone()
        assert row
        assert row[0] == row[1]
        cell = reader.execute("SELECT coret.markdown_cell(%s)", [text]).fetchone()
        assert cell
        assert len(cell[0]) <= 2 * 60
        assert "\n" not in cell[0]
        assert not re.search(r"(?<!\\)\|", cell[0])
        masked = reader.execute("SELECT coret.masked(%s)", [text]).fetchone()
        assert masked
        assert len(masked[0]) <= 40
        assert not re.search(r"[a-wyzA-WYZ0-8]|[^\x00-\x7f]", masked[0])
        # Only what is there is found, whatever it is asked with.
        held = reader.execute("SELECT * FROM coret.tables_holding(%s)", [[text]]).fetchall()
        assert held == []
        state = call(reader, Routine("table_named", ("text",)), [text])
        assert state == (None if text in NAMES_OF_QUINCETAB else "42P01")


def test_questions_that_arent_any_are_refused_before_a_worker_is(
    reader: psycopg.Connection,
) -> None:
    for question, told in (
        ("", "the question is empty"),
        (" \t ", "the question is empty"),
        (None, "the question is empty"),
        ("x" * 8_001, "the question is 8001 characters long"),
    ):
        for statement in (
            "SELECT * FROM coret.retrieve(%s)",
            "SELECT coret.schema_slice(%s)",
            "SELECT coret.submit(%s)",
            "CALL coret.retrieve_call(%s)",
        ):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"coret: {told}"):
                reader.execute(statement.encode(), [question])
    # NUL is no text at all.
    with pytest.raises(psycopg.DataError):
        reader.execute("SELECT coret.submit(%s)", ["a\0b"])
