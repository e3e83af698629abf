"""The doctor without a database: what it says of what fails, and that it keeps secrets."""

import contextlib
import socket
import threading

import numpy as np
import pytest

from coret_pg.database.findings import judge_pool, judge_vector
from coret_pg.doctor import Check, examine
from coret_pg.settings import load_settings
from tests.fake_endpoint import FakeEndpoint

PASSWORD = "hunter2-correct-horse"
KEY = "sk-test-4f9c1b7e2a"
EMBEDDING_KEY = "ek-test-77aa01c9d3"


@pytest.fixture(autouse=True)
def away_from_any_env_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def endpoint():
    with FakeEndpoint() as server:
        yield server


@pytest.fixture
def look(endpoint):
    """Examine with the fake endpoint's models and a database that isn't there; by name."""

    def run(**more) -> dict[str, Check]:
        arguments = {
            "dsn": f"postgresql://ann:{PASSWORD}@127.0.0.1:1/shop",
            "embedding_provider": "openai",
            "embedding_model": "fake",
            "embedding_base_url": endpoint.base_url,
            "embedding_api_key": EMBEDDING_KEY,
            "llm_model": "fake",
            "llm_base_url": endpoint.base_url,
            "llm_api_key": KEY,
        } | more
        checks = list(examine(load_settings(**arguments)))
        shown = " ".join(f"{check.found} {check.remedy}" for check in checks)
        for secret in (PASSWORD, KEY, EMBEDDING_KEY):
            assert secret not in shown
        assert all("\n" not in f"{check.found}{check.remedy}" for check in checks)
        assert len({check.name for check in checks}) == len(checks)
        return {check.name: check for check in checks}

    return run


class RefusingServer:
    """A server that asks for the password in clear text, and quotes it when it refuses."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    connection.recv(1024)
                    connection.sendall(b"R\0\0\0\x08\0\0\0\x03")
                    password = connection.recv(1024)[5:-1]
                    fields = (
                        b"SFATAL\0C28P01\0Mpassword authentication failed: " + password + b"\0\0"
                    )
                    connection.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)


# --- the database


def test_without_a_server_the_other_checks_go_on(look):
    checks = look()
    assert list(checks) == [
        *("coret_pg", "Python", "packages", "server", "database"),
        *("embedding model", "chat model"),
    ]
    database = checks.pop("database")
    assert database.state == "fail"
    assert "host=127.0.0.1 port=1" in database.found
    assert "Connection refused" in database.found
    assert "CORET_DSN" in database.remedy
    assert {check.state for check in checks.values()} == {"ok"}


def test_wrong_password_is_told_without_it(look):
    with RefusingServer() as server:
        dsn = f"postgresql://ann:{PASSWORD}@127.0.0.1:{server.port}/shop?sslmode=disable"
        database = look(dsn=f"{dsn}&gssencmode=disable")["database"]
    assert database.state == "fail"
    assert "password authentication failed: ***" in database.found


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://ann:x@{PASSWORD}@db.invalid/shop",
        f"postgresql://ann:x/{PASSWORD}@db.invalid/shop",
        f"postgres+psycopg://ann:x@{PASSWORD}@db.invalid/shop?sslmode=disable",
    ],
)
def test_password_that_splits_the_url_is_not_taken_for_a_host(look, dsn):
    checks = look(dsn=dsn)
    assert checks["server"].state == "fail"
    assert "%40" in checks["server"].remedy
    assert "database" not in checks


def test_unreadable_dsn_is_not_shown(look):
    server = look(dsn=f"mysql://ann:{PASSWORD}@db")["server"]
    assert (server.state, server.found) == ("fail", "The DSN can't be read")


def test_embedded_server_that_can_not_start_is_a_finding(look, tmp_path):
    (tmp_path / "file").touch()
    server = look(dsn=None, data_dir=tmp_path / "file" / "data")["server"]
    assert server.state == "fail"
    assert server.remedy


def test_server_named_by_libpq_variables(look, monkeypatch):
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    checks = look(dsn=None)
    assert checks["server"].found == "the one named by libpq's variables"
    assert checks["database"].state == "fail"


# --- the models


def test_nothing_is_asked_before_its_check(endpoint):
    settings = load_settings(
        dsn="host=127.0.0.1 port=1", llm_model="fake", llm_base_url=endpoint.base_url
    )
    checks = examine(settings)
    assert next(checks).name == "coret_pg"
    assert endpoint.requests == []
    checks.close()


def test_embedding_model_is_asked_for_a_vector(look):
    check = look()["embedding model"]
    assert check.state == "ok"
    assert "fake by openai, 8 dimensions" in check.found


def test_unknown_embedding_model(look):
    check = look(embedding_provider="onnx", embedding_model="no-such-model")["embedding model"]
    assert check.state == "fail"
    assert "no-such-model" in check.found
    assert "CORET_EMBEDDING_MODEL" in check.remedy


def test_embedding_model_whose_vectors_are_no_unit_vectors(look, monkeypatch):
    class Stretched:
        provider, name, dimension = "onnx", "stretched", 2

        def embed_question(self, text):
            return np.array([3.0, 4.0])

        def close(self):
            pass

    monkeypatch.setattr("coret_pg.doctor.open_embedder", lambda settings: Stretched())
    check = look()["embedding model"]
    assert check.state == "fail"
    assert "length 5.000, not 1" in check.found


def test_chat_model_that_answers(look, endpoint):
    chat = look()["chat model"]
    assert chat.state == "ok"
    assert chat.found.startswith(f"fake-model at {endpoint.host}, with a key, answered 'ok' in ")
    assert [request.path for request in endpoint.requests].count("/v1/chat/completions") == 1


def test_chat_model_without_a_key(look):
    assert "without a key" in look(llm_api_key=None)["chat model"].found


def test_no_chat_model_is_fine(look, tmp_path):
    chat = look(llm_model=None, llm_api_key=None, llm_api_key_file=tmp_path / "none")["chat model"]
    assert (chat.state, chat.found) == ("ok", "none: selection works without")


def test_chat_model_that_answers_something_else(look, endpoint):
    endpoint.default_text = "Certainly! Let me think about the token you ask for, and why."
    chat = look()["chat model"]
    assert chat.state == "warn"
    assert "answered 61 characters" in chat.found
    assert "CORET_LLM_MODEL" in chat.remedy


def test_key_in_an_answer_is_not_shown(look, endpoint):
    endpoint.default_text = lambda request: f"ok {request.headers['authorization']}"
    assert "'ok Bearer ***'" in look()["chat model"].found


@pytest.mark.parametrize(
    ("status", "said"), [(401, "refused the key"), (404, "knows no model"), (500, "HTTP 500")]
)
def test_chat_endpoint_that_refuses_is_asked_once(look, endpoint, status, said):
    endpoint.fail(status, f"no {KEY}", times=2)
    checks = look(embedding_provider="onnx", embedding_model="no-such-model")
    assert checks["chat model"].state == "fail"
    assert said in checks["chat model"].found
    assert len(endpoint.requests) == 1


def test_chat_endpoint_that_is_not_there(look):
    chat = look(llm_base_url="http://127.0.0.1:1/v1")["chat model"]
    assert chat.state == "fail"
    assert "127.0.0.1:1 can't be reached: it refuses connections" in chat.found
    assert "CORET_LLM_BASE_URL" in chat.remedy


def test_key_file_that_can_not_be_read(look, tmp_path):
    chat = look(llm_api_key=None, llm_api_key_file=tmp_path / "none")["chat model"]
    assert chat.state == "fail"
    assert "CORET_LLM_API_KEY_FILE" in chat.remedy


# --- judgements


@pytest.mark.parametrize(("state", "remedy"), [("ok", "Do it"), ("warn", None), ("fail", None)])
def test_a_check_has_a_remedy_exactly_where_it_is_not_ok(state, remedy):
    with pytest.raises(ValueError, match="exactly where"):
        Check("server", state, "found", remedy)


CREATE = "in database shop: CREATE EXTENSION vector"
UPDATE = "in database shop, as the extension's owner: ALTER EXTENSION vector UPDATE"


@pytest.mark.parametrize(
    ("installed", "offered", "may_create", "state", "remedy"),
    [
        (None, None, True, "fail", f"(postgresql-<major>-pgvector), then run {CREATE}"),
        (None, "0.7.4", True, "fail", f"(postgresql-<major>-pgvector), then run {CREATE}"),
        (None, "0.8.6", False, "fail", f"Let a superuser run {CREATE}"),
        (None, "0.8.6", True, "warn", "Run `coret init`, which runs: CREATE EXTENSION vector"),
        ("0.7.4", "0.7.4", True, "fail", f"(postgresql-<major>-pgvector), then run {UPDATE}"),
        ("0.7.4", "0.8.2", True, "fail", f"Run {UPDATE}"),
        ("0.8.0", "0.8.3", True, "warn", f"(postgresql-<major>-pgvector), then run {UPDATE}"),
        ("0.8.3", "0.8.10", False, "warn", f"Run {UPDATE}"),
        ("0.8.3", None, False, "warn", f"(postgresql-<major>-pgvector), then run {UPDATE}"),
        ("0.8.4", "0.8.4", False, "ok", None),
        ("0.10.0", None, False, "ok", None),
    ],
)
def test_pgvector(installed, offered, may_create, state, remedy):
    finding = judge_vector(
        installed, offered, schema="public", may_create=may_create, database="shop"
    )
    assert finding.state == state
    assert (finding.remedy or "").endswith(remedy or "")
    assert (finding.remedy is None) == (remedy is None)


@pytest.mark.parametrize(
    ("tables", "vanished", "added", "steps", "state", "found"),
    [
        (0, 0, 0, [], "warn", "empty"),
        (0, 0, 7, [], "warn", "not refreshed yet: 7 tables wait"),
        (5, 0, 0, [("profile", 5, 0)], "ok", "5 tables, every step done for all"),
        (5, 0, 0, [("profile", 3, 0)], "warn", "5 tables; profile: 2 due"),
        (5, 0, 0, [("profile", 3, 2)], "warn", "5 tables; profile: 2 skipped"),
        (5, 1, 2, [("purpose", 5, 0)], "warn", "1 dropped, renamed or recreated since, 2 new"),
    ],
)
def test_pool(tables, vanished, added, steps, state, found):
    finding = judge_pool(tables, vanished, added, steps)
    assert finding.state == state
    assert found in finding.found
    if "skipped" in found:
        assert "coret.table_step" in finding.remedy
