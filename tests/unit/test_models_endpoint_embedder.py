"""Embeddings over HTTP against a real server: order, batches, checks, keys."""

import numpy as np
import pytest

from coret_pg.errors import ConfigurationError, ModelError
from coret_pg.models import open_embedder
from coret_pg.settings import load_settings
from tests.fake_endpoint import Behaviour, FakeEndpoint

TEXTS = [f"table {number}" for number in range(150)]


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
    embedders = []

    def build(url, **more):
        arguments = {"embedding_model": "fake", "llm_max_retries": 0} | more
        embedder = open_embedder(
            load_settings(embedding_provider="openai", embedding_base_url=url, **arguments)
        )
        embedders.append(embedder)
        return embedder

    yield build
    for embedder in embedders:
        embedder.close()


def expected(endpoint, texts):
    rows = np.array([endpoint.vector(text) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def answer(*vectors, indices=None):
    numbers = range(len(vectors)) if indices is None else indices
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": number, "embedding": vector}
            for number, vector in zip(numbers, vectors, strict=True)
        ],
    }


def test_rows_are_in_order_and_of_length_one(endpoint, opened):
    embedder = opened(endpoint.base_url)
    done = []
    rows = embedder.embed_documents(TEXTS, progress=done.append)
    assert rows.shape == (150, 8)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected(endpoint, TEXTS), atol=1e-6)
    assert done == [64, 128, 150]
    assert embedder.dimension == 8
    assert len(endpoint.requests) == 3
    body = endpoint.requests[0].body
    assert (body["model"], body["encoding_format"]) == ("fake", "float")


def test_what_an_endpoint_cannot_tell(endpoint, opened):
    embedder = opened(endpoint.base_url)
    assert (embedder.provider, embedder.name) == ("openai", "fake")
    assert (embedder.revision, embedder.max_tokens) == ("", None)
    assert embedder.cut_texts(["a" * 10_000, "b"]) == [False, False]
    assert endpoint.requests == []


def test_dimension_is_found_by_a_first_call(endpoint, opened):
    embedder = opened(endpoint.base_url)
    assert (embedder.dimension, embedder.dimension) == (8, 8)
    assert len(endpoint.requests) == 1


def test_no_texts_give_an_empty_array(endpoint, opened):
    assert opened(endpoint.base_url).embed_documents([]).shape == (0, 8)


def test_question_is_one_vector(endpoint, opened):
    vector = opened(endpoint.base_url).embed_question("who?")
    np.testing.assert_allclose(vector, expected(endpoint, ["who?"])[0], atol=1e-6)


def test_empty_and_odd_texts_are_sent_in_a_form_servers_take(endpoint, opened):
    opened(endpoint.base_url).embed_documents(["", "\ud800", "nul \0", "🙂 مرحبا"])
    assert endpoint.requests[0].texts == [" ", "?", "nul \0", "🙂 مرحبا"]


def test_refused_batch_is_halved_and_the_size_remembered(endpoint, opened):
    endpoint.max_batch = 20
    embedder = opened(endpoint.base_url)
    rows = embedder.embed_documents(TEXTS)
    np.testing.assert_allclose(rows, expected(endpoint, TEXTS), atol=1e-6)
    sizes = [len(request.texts) for request in endpoint.requests]
    assert sizes[:3] == [64, 32, 16]
    assert max(sizes[3:]) == 16
    embedder.embed_documents(TEXTS[:20])
    assert [len(request.texts) for request in endpoint.requests][-2:] == [16, 4]


def test_too_large_a_body_is_halved_too(endpoint, opened):
    endpoint.rule = lambda request: (
        Behaviour(status=413, raw=b"<html>Too Large</html>", content_type="text/html")
        if len(request.texts) > 1
        else None
    )
    assert opened(endpoint.base_url).embed_documents(["a", "b", "c"]).shape == (3, 8)


def test_single_text_that_is_refused_is_an_error(endpoint, opened):
    endpoint.rule = lambda _: Behaviour(status=413, error="too large")
    with pytest.raises(ModelError, match="so long a request") as caught:
        opened(endpoint.base_url).embed_documents(["a", "b"])
    assert "longer texts" in caught.value.remedy


def test_order_follows_the_index(endpoint, opened):
    endpoint.json(answer([0, 2], [3, 0], indices=[1, 0]))
    rows = opened(endpoint.base_url).embed_documents(["x", "y"])
    assert rows.tolist() == [[1, 0], [0, 1]]


def test_vectors_without_index_keep_the_servers_order(endpoint, opened):
    endpoint.json({"data": [{"embedding": [5, 0]}, {"embedding": [0, 5]}]})
    assert opened(endpoint.base_url).embed_documents(["x", "y"]).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (answer([1, 2]), "sent 1 vectors for 2 texts"),
        (answer([1, 2], [1, 2], [1, 2]), "sent 3 vectors for 2 texts"),
        (answer([1, 2], [1, 2, 3]), "of 2, 3 numbers, expected 2"),
        (answer([1, 2], [1, 2], indices=[0, 0]), "numbered"),
        (answer([1, 2], [1, 2], indices=[1, 2]), "numbered"),
        (answer("AACAPw==", "AACAPw=="), "no lists of numbers"),
        (answer([], []), "no lists of numbers"),
        (answer([1, "x"], [1, 2]), "something else than numbers"),
        (answer([1, None], [1, 2]), "zero or not finite"),
        (answer([1, 2], [0, 0]), "1 of 2 vectors"),
        ({"data": []}, "sent 0 vectors for 2 texts"),
        ({"data": None}, "something else than the API's JSON"),
        ({"error": "no such model"}, "no such model"),
        ({"data": [None, None]}, "no lists of numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_answers_that_do_not_fit_are_refused(endpoint, opened, body, said):
    endpoint.json(body)
    with pytest.raises(ModelError) as caught:
        opened(endpoint.base_url).embed_documents(["x", "y"])
    assert said in str(caught.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_numbers_that_are_not_finite_are_refused(endpoint, opened, number):
    endpoint.raw(f'{{"data": [{{"index": 0, "embedding": [1.0, {number}]}}]}}')
    with pytest.raises(ModelError, match=r"finite|can't be read"):
        opened(endpoint.base_url).embed_question("x")


def test_changed_dimension_is_refused(endpoint, opened):
    embedder = opened(endpoint.base_url)
    assert embedder.dimension == 8
    endpoint.json(answer([1, 2, 3]))
    with pytest.raises(ModelError, match="of 3 numbers, expected 8"):
        embedder.embed_question("x")


def test_web_page_with_status_200(endpoint, opened):
    endpoint.html()
    with pytest.raises(ModelError, match="CORET_EMBEDDING_BASE_URL"):
        opened(endpoint.base_url).embed_question("x")


def test_failures_name_the_embedding_settings(opened):
    key = "sk-embedding-1234"
    with FakeEndpoint(api_key="right") as server, pytest.raises(ModelError) as caught:
        opened(server.base_url, embedding_api_key=key).embed_question("x")
    assert "The embedding endpoint 127.0.0.1" in caught.value.what
    assert "CORET_EMBEDDING_API_KEY" in caught.value.remedy
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("same", "own", "sent"),
    [
        (True, None, "Bearer chat-key"),
        (False, None, "Bearer no-key-needed"),
        (True, "own-key", "Bearer own-key"),
    ],
)
def test_chat_key_goes_to_the_same_endpoint_only(endpoint, opened, same, own, sent):
    embedder = opened(
        endpoint.base_url,
        llm_base_url=endpoint.base_url if same else "http://127.0.0.1:9/v1",
        llm_api_key="chat-key",
        embedding_api_key=own,
    )
    embedder.embed_question("x")
    assert endpoint.requests[0].headers["authorization"] == sent


def test_openai_without_key_is_a_configuration_error(opened):
    with pytest.raises(ConfigurationError, match="CORET_EMBEDDING_API_KEY or OPENAI_API_KEY"):
        opened(None)


def test_openai_key_variable_serves_openais_own_endpoint(opened, monkeypatch):
    elsewhere = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_api_key": "for-elsewhere"}
    # A chat key set for elsewhere is not one for OpenAI.
    with pytest.raises(ConfigurationError):
        opened(None, **elsewhere)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    assert opened(None, **elsewhere).name == "fake"
