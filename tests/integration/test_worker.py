"""Questions from SQL: a worker answers them, several share them, and nothing is lost or left running."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from coret_pg.api import Coret
from coret_pg.errors import ConfigurationError, DatabaseError
from coret_pg.worker import Worker
from tests.fake_endpoint import Behaviour, FakeEndpoint
from tests.workers import WAIT_S, execute, fetch, llm, process, wait_for, working

PHYSICS = "Which teachers teach physics?"
TABLES = ["school.teachers", "school.courses", "school.subjects"]
CHOICE = '{"tables": ["teachers", "courses", "subjects"]}'
# What the adjustment makes of that choice.
BY_LLM = [*TABLES, "school.enrolments"]


@pytest.fixture
def pool(demo_dsn: str) -> str:
    """The demo warehouse, with dblink."""
    with psycopg.connect(demo_dsn, autocommit=True) as connection:
        try:
            connection.execute("CREATE EXTENSION dblink")
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this server has no dblink")
    return demo_dsn


def names(dsn: str, question: str = PHYSICS) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return [
            row[0]
            for row in connection.execute("SELECT table_name FROM coret.retrieve(%s)", [question])
        ]


def test_an_answer_from_sql_is_that_of_the_library(pool: str) -> None:
    with Coret(pool) as coret:
        answer = coret.retrieve(PHYSICS)
    with working(pool), psycopg.connect(pool) as connection:
        rows = connection.execute("SELECT * FROM coret.retrieve(%s)", [PHYSICS]).fetchall()
        slice_text = connection.execute("SELECT coret.schema_slice(%s)", [PHYSICS]).fetchone()
        explained = connection.execute(
            "SELECT coret.explain(%s), coret.explain(%s, 'json')", [rows[0][-1], rows[0][-1]]
        ).fetchall()
    assert [row[0] for row in rows] == answer.table_names == TABLES
    assert [row[1] for row in rows] == TABLES  # regclass
    assert rows[0][2:8] == (
        "selected", pytest.approx(answer.tables[0].relevance), "school.courses", ["teacher_id"], ["teacher_id"],
        pytest.approx(answer.tables[0].confidence),
    )  # fmt: skip
    assert rows[0][8].startswith("its names or values cover: teachers")
    assert rows[0][9] == "no-llm"
    assert slice_text == (answer.schema_slice,)
    text = "\n".join(row[0] for row in explained)
    assert f"Retrieval {rows[0][-1]}: {PHYSICS}" in text
    assert "-> school.teachers  (rank=1" in text
    assert "Join: (teacher_id) = school.courses (teacher_id)" in text
    assert json.loads(explained[0][1])["tables"][0]["table"] == "school.teachers"


@pytest.mark.parametrize(
    "begin",
    [
        "BEGIN READ ONLY",
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
    ],
)
def test_it_works_in_every_kind_of_transaction_and_for_every_row(pool: str, begin: str) -> None:
    with working(pool), psycopg.connect(pool, autocommit=True) as connection:
        connection.execute(begin.encode())
        rows = connection.execute(
            "SELECT q.question, array_agg(r.table_name) FROM (VALUES (%s), ('Which patients take amoxicillin?')) AS q(question)"
            " CROSS JOIN LATERAL coret.retrieve(q.question) AS r GROUP BY 1",
            [PHYSICS],
        ).fetchall()
        connection.execute("COMMIT")
    found = dict(rows)
    assert found[PHYSICS] == TABLES
    assert all(name.startswith("clinic.") for name in found["Which patients take amoxicillin?"])


def test_without_a_worker_it_fails_at_once(pool: str) -> None:
    started = time.monotonic()
    for call in ("coret.retrieve('x')", "coret.schema_slice('x')", "coret.submit('x')"):
        with pytest.raises(psycopg.Error, match="no worker is running") as caught:
            fetch(pool, f"SELECT {call}")
        assert "coret worker" in str(caught.value.diag.message_hint)
    with pytest.raises(psycopg.Error, match="no worker is running"):
        fetch(pool, "CALL coret.retrieve_call('x')")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("coret.retrieve('  ')", "the question is empty"),
        ("coret.retrieve(NULL)", "the question is empty"),
        ("coret.retrieve(repeat('x', 8001))", "8001 characters long"),
        ("coret.retrieve('x', k => 0)", "k is 0"),
        ("coret.retrieve('x', tau => 1.5)", "tau is 1.5"),
        ("coret.retrieve('x', tau => 'NaN')", "tau is NaN"),
        ("coret.retrieve('x', timeout_s => -1)", "timeout is -1"),
        ("coret.fetch(4711)", "no request 4711 of yours"),
        ("coret.explain(4711)", "no retrieval 4711 of yours"),
        ("coret.explain(0, 'xml')", "no retrieval 0 of yours"),
    ],
)
def test_bad_input_is_told(pool: str, call: str, says: str) -> None:
    with working(pool), pytest.raises(psycopg.Error, match=says) as caught:
        fetch(pool, f"SELECT {call}")
    assert str(caught.value.diag.message_primary).startswith("coret: ")
    assert caught.value.diag.message_hint


def test_where_dblink_is_missing_there_are_other_ways(demo_dsn: str) -> None:
    with working(demo_dsn), psycopg.connect(demo_dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error, match="dblink is missing") as caught:
            connection.execute("SELECT coret.retrieve(%s)", [PHYSICS])
        assert "coret.retrieve_call" in str(caught.value.diag.message_hint)
        connection.execute("SET default_transaction_isolation = 'repeatable read'")
        called = connection.execute("CALL coret.retrieve_call(%s)", [PHYSICS]).fetchone()
        assert called
        submitted = connection.execute("SELECT coret.submit(%s)", [PHYSICS]).fetchone()
        assert submitted
        wait_for(
            lambda: fetch(demo_dsn, "SELECT state FROM coret.request WHERE request_id = %s", submitted[0]) == "answered"
        )  # fmt: skip
        for request_id in (called[0], submitted[0]):
            rows = connection.execute("SELECT table_name FROM coret.fetch(%s)", [request_id])
            assert [row[0] for row in rows] == TABLES
    assert [table["table_name"] for table in called[1]["tables"]] == ["teachers", "courses", "subjects"]  # fmt: skip


def test_nothing_fits_is_no_row_and_no_error(pool: str) -> None:
    with FakeEndpoint(default_text='{"tables": []}') as endpoint:
        with working(pool, llm_model="m", llm_base_url=endpoint.base_url):
            assert names(pool, "What is the airspeed of an unladen swallow?") == []
            assert fetch(pool, "SELECT coret.schema_slice('the airspeed of a swallow')") == ""


def test_what_a_worker_cant_answer_is_told_to_the_caller(pool: str) -> None:
    with psycopg.connect(pool) as connection:
        connection.execute("UPDATE coret.embedding_model SET is_active = false")
    with working(pool), pytest.raises(psycopg.Error, match="never refreshed") as caught:
        names(pool)
    assert "coret refresh" in str(caught.value.diag.message_hint)


def test_an_error_of_its_own_doesnt_end_the_worker(
    pool: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret-4711")

    with working(pool):
        with monkeypatch.context() as patch:
            patch.setattr("coret_pg.worker.run.answer", broken)
            with pytest.raises(
                psycopg.Error, match="an error of its own \\(RuntimeError\\)"
            ) as told:
                names(pool)
        assert "secret-4711" not in str(told.value)
        assert names(pool) == TABLES
    assert "request" in caplog.text


def test_a_slow_chat_model_falls_back_within_the_callers_time(pool: str) -> None:
    with FakeEndpoint(default_text=CHOICE, rule=lambda _: Behaviour(text=CHOICE, delay=30)) as endpoint:  # fmt: skip
        with working(pool, llm_model="m", llm_base_url=endpoint.base_url):
            started = time.monotonic()
            row = fetch(pool, "SELECT path FROM coret.retrieve(%s, timeout_s => 3)", PHYSICS)
            assert row == "fallback"
            assert time.monotonic() - started < 3.5
    assert "within the time its caller waits" in str(fetch(pool, "SELECT path_reason FROM coret.retrieval"))  # fmt: skip


@pytest.mark.parametrize("how", ["statement_timeout", "cancel", "terminate"])
def test_a_caller_that_goes_away_leaves_nothing_running(pool: str, how: str) -> None:
    with FakeEndpoint(rule=lambda _: Behaviour(text=CHOICE, delay=60)) as endpoint:
        with working(pool, llm_model="m", llm_base_url=endpoint.base_url, calls=1):
            caller = psycopg.connect(pool, autocommit=True)
            asking = threading.Thread(target=_ask_and_fail, args=(caller, how))
            asking.start()
            wait_for(lambda: len(endpoint.requests) == 1)
            if how == "cancel":
                caller.cancel_safe()
            elif how == "terminate":
                fetch(pool, "SELECT pg_terminate_backend(%s)", caller.info.backend_pid)
            asking.join(WAIT_S)
            caller.close()
            gone = time.monotonic()
            wait_for(lambda: fetch(pool, "SELECT state FROM coret.request") == "cancelled", 5)
            # Its only thread is free again, long before the endpoint would have answered.
            endpoint.rule = lambda _: Behaviour(text=CHOICE)
            assert names(pool) == BY_LLM
            assert time.monotonic() - gone < 10
            running = fetch(
                pool,
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND (state = 'active' OR application_name = 'coret_call') AND backend_type = 'client backend'",
            )
            assert running == 0
    assert str(fetch(pool, "SELECT outcome FROM coret.llm_call ORDER BY call_id")).startswith("abandoned")  # fmt: skip


def _ask_and_fail(caller: psycopg.Connection, how: str) -> None:
    if how == "statement_timeout":
        caller.execute("SET statement_timeout = '1s'")
    with pytest.raises(psycopg.Error):
        caller.execute("SELECT * FROM coret.retrieve(%s)", [PHYSICS])


def test_a_worker_killed_in_the_middle_is_replaced_and_nothing_is_answered_twice(pool: str) -> None:
    with FakeEndpoint(rule=lambda _: Behaviour(text=CHOICE, delay=60)) as endpoint:
        found: list[list[str]] = []
        with process(pool, **llm(endpoint)) as first:
            wait_for(lambda: fetch(pool, "SELECT count(*) FROM coret.worker") == 1)
            asking = threading.Thread(target=lambda: found.append(names(pool)))
            asking.start()
            wait_for(lambda: len(endpoint.requests) == 1)
            endpoint.rule = lambda _: Behaviour(text=CHOICE)
            with process(pool, **llm(endpoint)):
                wait_for(lambda: fetch(pool, "SELECT count(*) FROM coret.worker") == 2)
                first.send_signal(signal.SIGKILL)
                asking.join(WAIT_S)
        assert found == [BY_LLM]
        assert len(endpoint.requests) == 2
    assert fetch(pool, "SELECT count(*) FROM coret.retrieval") == 1
    assert fetch(pool, "SELECT attempts FROM coret.request") == 2


def test_the_last_worker_killed_fails_its_calls_soon(pool: str) -> None:
    with FakeEndpoint(rule=lambda _: Behaviour(text=CHOICE, delay=60)) as endpoint:
        with process(pool, **llm(endpoint)) as only:
            wait_for(lambda: fetch(pool, "SELECT count(*) FROM coret.worker") == 1)
            killing = threading.Timer(1.0, only.kill)
            killing.start()
            started = time.monotonic()
            with pytest.raises(psycopg.Error, match="the worker has stopped"):
                names(pool)
            assert time.monotonic() - started < 10


def test_a_worker_told_to_stop_finishes_what_it_began(pool: str) -> None:
    with FakeEndpoint(rule=lambda _: Behaviour(text=CHOICE, delay=2)) as endpoint:
        found: list[list[str]] = []
        with process(pool, **llm(endpoint)) as only, process(pool, **llm(endpoint)) as _:
            wait_for(lambda: fetch(pool, "SELECT count(*) FROM coret.worker") == 2)
            asking = threading.Thread(target=lambda: found.append(names(pool)))
            asking.start()
            wait_for(lambda: len(endpoint.requests) == 1)
            only.send_signal(signal.SIGTERM)
            assert only.wait(WAIT_S) == 0
            asking.join(WAIT_S)
        assert found == [BY_LLM]
        assert len(endpoint.requests) == 1


def test_a_worker_connects_again_where_the_server_ends_its_sessions(pool: str) -> None:
    with working(pool):
        assert names(pool) == TABLES
        fetch(
            pool,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        wait_for(lambda: fetch(pool, "SELECT count(*) FROM coret.worker") == 1)
        assert names(pool) == TABLES


def test_many_callers_and_two_workers_each_question_answered_once(pool: str) -> None:
    questions = [f"{PHYSICS} {number}" for number in range(24)]
    found: dict[str, list[str]] = {}
    with FakeEndpoint(rule=lambda _: Behaviour(text=CHOICE, delay=0.1)) as endpoint:
        with process(pool, **llm(endpoint)), process(pool, **llm(endpoint)):
            wait_for(lambda: fetch(pool, "SELECT count(*) FROM coret.worker") == 2)
            callers = [
                threading.Thread(target=lambda q=q: found.update({q: names(pool, q)}))
                for q in questions
            ]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join(60)
            assert len(endpoint.requests) == len(questions)
    assert found == dict.fromkeys(questions, BY_LLM)
    assert fetch(pool, "SELECT count(DISTINCT question) FROM coret.retrieval") == len(questions)
    assert fetch(pool, "SELECT count(*) FROM coret.retrieval") == len(questions)
    assert fetch(pool, "SELECT count(DISTINCT taken_by) FROM coret.request") == 2


@pytest.fixture
def plain_role(pool: str) -> Iterator[str]:
    """A role that may log in, and nothing else."""
    name = f"plain_{os.getpid()}"
    with psycopg.connect(pool, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(name)))


def test_a_worker_needs_its_own_role_alone(pool: str, plain_role: str) -> None:
    as_plain = psycopg.conninfo.make_conninfo(pool, user=plain_role)
    with Coret(as_plain) as coret:
        worker = Worker(coret.database, coret.embedder, None)
        with pytest.raises(DatabaseError, match="may not do this"):
            worker.run()
        execute(pool, f"GRANT coret_reader TO {plain_role}")
        with pytest.raises(DatabaseError, match="GRANT coret_worker TO"):
            worker.run()
    execute(pool, f"GRANT coret_worker TO {plain_role}")
    with working(as_plain):
        assert names(pool) == TABLES


def test_a_worker_doesnt_run_through_a_pooler(pool: str) -> None:
    with Coret(pool, pooler=True) as coret, pytest.raises(ConfigurationError, match="pooler"):
        Worker(coret.database, coret.embedder, None)


def test_the_server_that_cant_reach_itself_says_what_to_do(pool: str) -> None:
    with psycopg.connect(pool, autocommit=True) as connection:
        connection.execute("CREATE SERVER coret_loopback FOREIGN DATA WRAPPER dblink_fdw OPTIONS (host '/nowhere', dbname 'x')")  # fmt: skip
        connection.execute("CREATE USER MAPPING FOR CURRENT_USER SERVER coret_loopback OPTIONS (user 'u', password 'secret-4711')")  # fmt: skip
    with working(pool):
        with pytest.raises(psycopg.Error, match="cannot reach itself") as caught:
            names(pool)
        assert "coret_loopback" in str(caught.value.diag.message_hint)
        assert "secret-4711" not in str(caught.value) + str(caught.value.diag.message_detail)
        # Named rightly, it works: values are quoted as libpq wants them.
        named = {
            name: sql.Literal(str(psycopg.conninfo.conninfo_to_dict(pool)[name]))
            for name in ("host", "port", "user", "dbname")
        }
        execute(
            pool,
            sql.SQL("ALTER SERVER coret_loopback OPTIONS (SET host {host}, SET dbname {dbname}, port {port})").format(**named).as_string(),
            sql.SQL("ALTER USER MAPPING FOR CURRENT_USER SERVER coret_loopback OPTIONS (SET user {user}, SET password {password})")
            .format(**named, password=sql.Literal("it's \\ any")).as_string(),
        )  # fmt: skip
        assert names(pool) == TABLES
