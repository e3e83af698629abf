"""The chat model against a real HTTP server: what it sends, and how each failure is told."""

import socket
import time

import pytest

from coret_pg.errors import ConfigurationError, ModelError
from coret_pg.models import ChatAnswer, ChatModel, open_chat
from coret_pg.settings import load_settings
from tests.fake_endpoint import Behaviour, FakeEndpoint

KEY = "sk-test-4f9c1b7e2a"
ASK = [{"role": "user", "content": "Which tables?"}]
SCHEMA = {"type": "object", "properties": {"tables": {"type": "array"}}}


@pytest.fixture(autouse=True)
def no_openai_variables(monkeypatch, tmp_path):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CORET_LLM_API_KEY", "CORET_LLM_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)  # away from a .env


@pytest.fixture
def endpoint():
    with FakeEndpoint() as server:
        yield server


@pytest.fixture
def opened():
    """Open chat models that are closed at the end."""
    models = []

    def build(url, **more) -> ChatModel:
        arguments = {"llm_model": "fake", "llm_max_retries": 0, "llm_timeout_s": 10} | more
        model = open_chat(load_settings(llm_base_url=url, **arguments))
        assert model is not None
        models.append(model)
        return model

    yield build
    for model in models:
        model.close()


def failure(model, **more) -> ModelError:
    with pytest.raises(ModelError) as caught:
        model.complete(ASK, **more)
    # No chain: the original may quote the key.
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


# --- answers


def test_answer_carries_text_tokens_and_model(endpoint, opened):
    endpoint.answer("two tables")
    answer = opened(endpoint.base_url).complete(ASK, max_tokens=50)
    assert isinstance(answer, ChatAnswer)
    assert (answer.text, answer.model, answer.finish_reason) == ("two tables", "fake-model", "stop")
    assert (answer.prompt_tokens, answer.completion_tokens) == (2, 2)
    assert 0 < answer.seconds < 5
    body = endpoint.requests[0].body
    assert body == {"model": "fake", "messages": ASK, "temperature": 0, "max_tokens": 50}


def test_no_model_set_is_no_chat():
    assert open_chat(load_settings()) is None


def test_model_works_as_context_manager(endpoint):
    settings = load_settings(llm_model="fake", llm_base_url=endpoint.base_url)
    with open_chat(settings) as model:
        assert model.complete(ASK).text == "ok"
        assert model.endpoint == endpoint.host


def test_cut_answer_is_passed_on_with_its_reason(endpoint, opened):
    endpoint.answer('{"tables": ["a"', finish_reason="length")
    answer = opened(endpoint.base_url).complete(ASK)
    assert (answer.text, answer.finish_reason) == ('{"tables": ["a"', "length")


def test_answer_without_usage_has_no_counts(endpoint, opened):
    endpoint.json({"choices": [{"message": {"role": "assistant", "content": "hello"}}]})
    answer = opened(endpoint.base_url).complete(ASK)
    assert (answer.text, answer.prompt_tokens, answer.finish_reason) == ("hello", None, None)
    assert answer.model == "fake"


@pytest.mark.parametrize("text", ["\ud800 lone", "nul \0 byte", "🙂 مرحبا"])
def test_odd_characters_reach_the_server(endpoint, opened, text):
    opened(endpoint.base_url).complete([{"role": "user", "content": text}])
    assert endpoint.requests[0].body["messages"][0]["content"] == text.replace("\ud800", "?")


# --- keys and URLs


def test_own_endpoint_without_key_still_works(endpoint, opened):
    assert opened(endpoint.base_url).complete(ASK).text == "ok"
    assert endpoint.requests[0].headers["authorization"] == "Bearer no-key-needed"


def test_key_is_sent_stripped(endpoint, opened):
    opened(endpoint.base_url, llm_api_key=f" {KEY}\n").complete(ASK)
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_openai_without_key_names_both_variables():
    with pytest.raises(ConfigurationError, match=r"CORET_LLM_API_KEY or OPENAI_API_KEY"):
        open_chat(load_settings(llm_model="gpt-x"))


def test_openai_base_url_variable_is_honoured(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
    with open_chat(load_settings(llm_model="fake")) as model:
        assert model.complete(ASK).text == "ok"


@pytest.mark.parametrize(
    "url",
    ["localhost:8000/v1", "ftp://user:hunter2@h/v1", "http://u:hunter2@h:notaport/v1", "http://"],
)
def test_bad_base_url_is_refused_without_showing_it(opened, url):
    with pytest.raises(ConfigurationError, match="CORET_LLM_BASE_URL") as caught:
        opened(url)
    assert "hunter2" not in str(caught.value)


def test_key_that_no_header_can_hold_is_refused_without_showing_it(opened):
    with pytest.raises(ConfigurationError) as caught:
        opened("http://127.0.0.1:1/v1", llm_api_key="geheim\u00e9\nx")
    assert "geheim" not in str(caught.value)


def test_user_and_password_in_the_url_work_and_are_never_shown(endpoint, opened):
    url = endpoint.base_url.replace("//", "//anna:s%40cret@")
    model = opened(url)
    assert model.endpoint == endpoint.host
    model.complete(ASK)
    assert endpoint.requests[0].headers["authorization"].startswith("Basic ")
    endpoint.fail(400, "no entry for anna:s@cret or s%40cret")
    error = failure(model)
    assert "cret" not in str(error)
    assert "cret" not in repr(vars(model))


def test_ipv6_endpoint_is_shown_in_brackets(opened):
    assert opened("http://[::1]:8123/v1").endpoint == "[::1]:8123"


# --- response formats and refused parameters


def refusing(*forms, status=400):
    """Refuse these response formats; tell formats by type, and by a schema inside."""

    def rule(request):
        given = request.body.get("response_format") or {"type": "none"}
        form = given["type"] + ("+schema" if "schema" in given else "")
        if form in forms:
            return Behaviour(status=status, error="response_format is not supported")
        return None

    return rule


def formats(endpoint):
    return [request.body.get("response_format") for request in endpoint.requests]


def test_schema_is_sent_in_the_strict_form(endpoint, opened):
    opened(endpoint.base_url).complete(ASK, json_schema=SCHEMA)
    sent = {"name": "answer", "strict": True, "schema": SCHEMA}
    assert formats(endpoint) == [{"type": "json_schema", "json_schema": sent}]


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    ("refused", "last"),
    [
        (["json_schema"], {"type": "json_object", "schema": SCHEMA}),
        (["json_schema", "json_object+schema"], {"type": "json_object"}),
        (["json_schema", "json_object+schema", "json_object"], None),
    ],
)
def test_refused_format_falls_back_and_is_remembered(endpoint, opened, status, refused, last):
    endpoint.rule = refusing(*refused, status=status)
    model = opened(endpoint.base_url)
    assert model.complete(ASK, json_schema=SCHEMA).text == "ok"
    assert len(endpoint.requests) == len(refused) + 1
    model.complete(ASK, json_schema=SCHEMA)
    assert len(endpoint.requests) == len(refused) + 2
    assert formats(endpoint)[-1] == last


def test_failure_with_another_cause_does_not_weaken_the_format(endpoint, opened):
    model = opened(endpoint.base_url)
    endpoint.fail(500, "out of memory", times=4)
    assert "out of memory" in str(failure(model, json_schema=SCHEMA))
    model.complete(ASK, json_schema=SCHEMA)
    assert formats(endpoint)[-1]["type"] == "json_schema"


def test_refused_temperature_is_left_out_and_remembered(endpoint, opened):
    endpoint.rule = lambda request: (
        Behaviour(status=400, error="Unsupported value: 'temperature' does not support 0")
        if "temperature" in request.body
        else None
    )
    model = opened(endpoint.base_url)
    model.complete(ASK)
    model.complete(ASK)
    assert ["temperature" in request.body for request in endpoint.requests] == [True, False, False]


def test_refused_max_tokens_is_renamed_and_remembered(endpoint, opened):
    endpoint.rule = lambda request: (
        Behaviour(status=400, error="Use 'max_completion_tokens' instead.", param="max_tokens")
        if "max_tokens" in request.body
        else None
    )
    model = opened(endpoint.base_url)
    model.complete(ASK, max_tokens=7)
    model.complete(ASK, max_tokens=7)
    assert [request.body.get("max_completion_tokens") for request in endpoint.requests] == [
        None,
        7,
        7,
    ]


def test_server_that_refuses_everything_is_asked_seven_times(endpoint, opened):
    endpoint.rule = lambda _: Behaviour(
        status=400, error="no temperature, max_tokens, max_completion_tokens, response_format"
    )
    failure(opened(endpoint.base_url), json_schema=SCHEMA, max_tokens=5)
    assert len(endpoint.requests) == 7
    assert set(endpoint.requests[-1].body) == {"model", "messages"}


def test_too_long_prompt_is_told_at_once(endpoint, opened):
    endpoint.fail(400, "This model's maximum context length is 4096 tokens; reduce max_tokens")
    error = failure(opened(endpoint.base_url), json_schema=SCHEMA, max_tokens=5)
    assert "so long a request" in error.what
    assert "--k" in error.remedy
    assert len(endpoint.requests) == 1


# --- failures


@pytest.mark.parametrize(
    ("status", "said", "remedy"),
    [
        (403, "forbids", "CORET_LLM_API_KEY"),
        (404, "knows no model 'fake'", "CORET_LLM_MODEL"),
        (429, "HTTP 429", "CORET_LLM_MAX_RETRIES"),
        (500, "failed (HTTP 500): told to fail", "log"),
        (503, "failed (HTTP 503)", "log"),
        (418, "refused the request (HTTP 418)", "CORET_LLM_BASE_URL"),
    ],
)
def test_http_errors_say_what_and_what_next(endpoint, opened, status, said, remedy):
    endpoint.fail(status)
    error = failure(opened(endpoint.base_url))
    assert said in error.what
    assert endpoint.host in error.what
    assert remedy in error.remedy


def test_wrong_key_is_never_shown(opened):
    with FakeEndpoint(api_key="right") as server:
        error = failure(opened(server.base_url, llm_api_key=KEY))
    assert "refused the key (HTTP 401)" in error.what
    assert KEY not in str(error)


def test_key_in_a_servers_text_is_starred_before_the_cut(endpoint, opened):
    endpoint.fail(500, "x" * 290 + KEY + "y" * 500)
    error = failure(opened(endpoint.base_url, llm_api_key=KEY))
    assert "***" in error.what
    assert KEY[:5] not in error.what
    assert len(error.what) < 400


def test_rate_limit_is_waited_for(endpoint, opened):
    endpoint.fail(429, headers={"Retry-After": "0.05"})
    answer = opened(endpoint.base_url, llm_max_retries=2).complete(ASK)
    assert answer.text == "ok"
    assert len(endpoint.requests) == 2
    assert answer.seconds >= 0.05


def test_connection_refused(opened):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure(opened(f"http://127.0.0.1:{port}/v1"))
    assert f"The chat endpoint 127.0.0.1:{port} can't be reached: it refuses" in error.what
    assert "CORET_LLM_BASE_URL" in error.remedy


def test_unknown_host(opened, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = failure(opened("http://nowhere.invalid/v1"))
    assert "nowhere.invalid can't be reached: its name can't be resolved" in error.what


def test_timeout_is_told_with_its_limit(endpoint, opened):
    endpoint.answer("late", delay=20)
    started = time.monotonic()
    error = failure(opened(endpoint.base_url, llm_timeout_s=0.2))
    assert "no answer within 0.2 s" in error.what
    assert "CORET_LLM_TIMEOUT_S" in error.remedy
    assert time.monotonic() - started < 5


def test_cut_connection(endpoint, opened):
    endpoint.cut()
    assert "can't be reached" in failure(opened(endpoint.base_url)).what


def test_no_tls_where_tls_is_asked_for(endpoint, opened):
    error = failure(opened(endpoint.base_url.replace("http:", "https:")))
    assert "TLS" in error.what


def test_web_page_with_status_200(endpoint, opened):
    endpoint.html()
    error = failure(opened(endpoint.base_url))
    assert "<title>Sign in" in error.what
    assert "/v1" in error.remedy


def test_broken_json(endpoint, opened):
    endpoint.raw('{"choices": [')
    assert "can't be read" in failure(opened(endpoint.base_url)).what


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        3,
        "text",
        {"choices": None},
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": ["text"]},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
    ],
    ids=str,
)
def test_json_without_a_choice(endpoint, opened, body):
    endpoint.json(body)
    assert "something else than the API's JSON" in failure(opened(endpoint.base_url)).what


def test_error_with_status_200_is_quoted(endpoint, opened):
    endpoint.json({"error": {"message": "upstream is down", "code": 502}})
    assert "upstream is down" in failure(opened(endpoint.base_url)).what


@pytest.mark.parametrize(
    ("message", "reason", "said"),
    [
        ({"content": ""}, "stop", "without text (finish_reason stop)"),
        ({"content": None}, None, "without text"),
        ({"content": " \n"}, "content_filter", "finish_reason content_filter"),
        ({"content": None, "reasoning_content": "hm"}, "length", "output limit"),
        ({"content": None, "refusal": "I won't"}, "stop", "refused to answer: I won't"),
        ({}, "stop", "without text"),
        ({"content": 5}, "stop", "without text"),
    ],
)
def test_answer_without_text(endpoint, opened, message, reason, said):
    endpoint.json({"choices": [{"message": message, "finish_reason": reason}]})
    assert said in failure(opened(endpoint.base_url)).what
