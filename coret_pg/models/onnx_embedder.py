"""Embeddings by onnxruntime: no torch, the default of a plain install."""

import ctypes
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coret_pg.errors import ModelError
from coret_pg.models.onnx_files import OnnxModel, find_model
from coret_pg.models.vectors import encodable, unit_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# A batch holds at most this many tokens with its padding. Measured on two cores: questions are
# fastest at 16 to 32 a batch, 256-token texts at 1 or 2 (the activations stay in the cache).
BATCH_TOKENS = 512
BATCH_TEXTS = 32
# Texts are tokenized and sorted by length this many at a time, to bound the memory.
WINDOW = 1024
# A small model gains little beyond this, and containers report more cores than they may use.
MAX_THREADS = 4


def open_onnx(name: str) -> "OnnxEmbedder":
    """Return the embedder of the built-in model or of a folder.

    Raises ModelError for an unknown name, and files that are damaged, missing or of another kind.
    """
    # The work is in the model, not the tokenizer, whose threads warn after every fork.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # From 1.29 on, onnxruntime reports its use to Microsoft unless told not to before its import
    # (its Privacy.md). Its reporting thread also makes a forked child hang at exit.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    return OnnxEmbedder(find_model(name))


class OnnxEmbedder:
    """Compute embeddings on the CPU; see Embedder for the methods."""

    provider = "onnx"
    is_remote = False

    def __init__(self, model: OnnxModel) -> None:
        self.name = model.name
        self.revision = model.revision
        self.max_tokens = model.max_tokens
        self._model = model
        self._whole, self._cutting, self._pad = _tokenizers(model)
        session = _session(model)
        self._session: Any = session
        self._inputs = {item.name for item in session.get_inputs()}
        self._output, self._pooled = self._find_output(session)
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self._inputs:
            raise ModelError(
                f"The model {self.name} is no text encoder: it takes {sorted(self._inputs)}",
                remedy="Export it for feature extraction, with input_ids and attention_mask",
            )
        # Asked of the model itself: an exported graph often leaves the dimension symbolic.
        self.dimension = self._vectors([self._cutting.encode("dimension").ids]).shape[1]
        _LIVE.add(self)

    def embed_documents(
        self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Return one row a text: see Embedder."""
        rows = np.empty((len(texts), self.dimension), np.float32)
        done = 0
        for start in range(0, len(texts), WINDOW):
            ids = self._tokenize(texts[start : start + WINDOW], self._model.document_prompt)
            for batch in _batches([len(item) for item in ids]):
                vectors = self._vectors([ids[position] for position in batch])
                rows[[start + position for position in batch]] = vectors
                done += len(batch)
                if progress is not None:
                    progress(done)
        return rows

    def embed_question(self, text: str) -> NDArray[np.float32]:
        """Return the vector of one question: see Embedder."""
        vector: NDArray[np.float32] = self._vectors(
            self._tokenize([text], self._model.question_prompt)
        )[0]
        return vector

    def cut_texts(self, texts: Sequence[str]) -> list[bool]:
        """Tell which texts are cut: see Embedder. Counts the prompt of documents, if any."""
        cut: list[bool] = []
        for start in range(0, len(texts), WINDOW):
            heads = [
                self._head(self._model.document_prompt + text)
                for text in texts[start : start + WINDOW]
            ]
            encodings = self._whole.encode_batch_fast(heads)
            cut += [len(encoding) > self.max_tokens for encoding in encodings]
        return cut

    def close(self) -> None:
        """Do nothing: the model holds no connection."""

    def _tokenize(self, texts: Sequence[str], prompt: str) -> list[list[int]]:
        heads = [self._head(prompt + text) for text in texts]
        return [encoding.ids for encoding in self._cutting.encode_batch_fast(heads)]

    def _head(self, text: str) -> str:
        """Return a start of the text that has the same first max_tokens tokens.

        Keeps a megabyte of text from being tokenized whole. The margin covers a word that the
        cut splits: 100 characters are at most 100 tokens, and a longer word is one.
        """
        size = self.max_tokens * 32
        while len(text) > size:
            head = encodable(text[:size])
            if len(self._whole.encode_batch_fast([head])[0]) >= self.max_tokens + 100:
                return head
            size *= 8
        return encodable(text)

    def _vectors(self, ids: list[list[int]]) -> NDArray[np.float32]:
        session = self._session
        if session is None:
            session = self._session = _session(self._model)
        shape = (len(ids), max(len(item) for item in ids))
        tokens = np.full(shape, self._pad, np.int64)
        mask = np.zeros(shape, np.int64)
        for row, item in enumerate(ids):
            tokens[row, : len(item)] = item
            mask[row, : len(item)] = 1
        feed = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros(shape, np.int64),
        }
        output: NDArray[Any] = session.run(
            [self._output], {name: feed[name] for name in self._inputs}
        )[0]
        return unit_rows(self._pool(output, mask), model=self.name)

    def _pool(self, output: NDArray[Any], mask: NDArray[np.int64]) -> NDArray[Any]:
        if self._pooled:
            return output
        if self._model.pooling == "cls":
            return output[:, 0]
        # At least one token: a tokenizer without special tokens gives an empty text none.
        counts = np.maximum(mask.sum(axis=1), 1)[:, None]
        means: NDArray[Any] = (
            np.einsum("nsd,ns->nd", output.astype(np.float32), mask.astype(np.float32)) / counts
        )
        return means

    def _abandon_session(self) -> None:
        """Leave the session of the parent process for good.

        Its threads don't survive a fork: to run it, or to free it at exit, would wait for them
        for ever. So it gets a reference that is never given back.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
        self._session = None

    def _find_output(self, session: Any) -> tuple[str, bool]:
        """Return the output to read, and whether the graph has pooled it already."""
        ranks = {item.name: len(item.shape) for item in session.get_outputs()}
        if ranks.get("sentence_embedding") == 2:
            return "sentence_embedding", True
        for name, rank in ranks.items():
            if rank == 3:
                return name, False
        raise ModelError(
            f"The model {self.name} gives no embeddings: its outputs are {sorted(ranks)}",
            remedy="Export it for feature extraction, with last_hidden_state as output",
        )


_LIVE: weakref.WeakSet[OnnxEmbedder] = weakref.WeakSet()


def _after_fork() -> None:
    for embedder in list(_LIVE):
        embedder._abandon_session()


# Where there is no fork there is no such function.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield positions, shortest text first, so that little is spent on padding."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Sorted, so the newest is the longest and sets the width of the whole batch.
        if batch and (
            len(batch) == BATCH_TEXTS or (len(batch) + 1) * lengths[position] > BATCH_TOKENS
        ):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _tokenizers(model: OnnxModel) -> "tuple[Tokenizer, Tokenizer, int]":
    """Return one tokenizer that reads all, one that stops at the limit, and the padding id.

    Two, because switching one between the states is not safe between threads.
    """
    from tokenizers import Tokenizer

    whole = model.tokenizer
    padding = whole.padding
    pad = padding["pad_id"] if padding else whole.token_to_id("[PAD]")
    if pad is None:
        pad = whole.token_to_id("<pad>")
    # A folder's file may have its own limit and padding switched on.
    whole.no_padding()
    whole.no_truncation()
    cutting = Tokenizer.from_str(whole.to_str())
    cutting.enable_truncation(model.max_tokens)
    return whole, cutting, 0 if pad is None else int(pad)


def _cores() -> int:
    # Only Linux tells which cores this process may use.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _session(model: OnnxModel) -> Any:
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    # For the case that someone else imported it before the variable was set.
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = min(_cores(), MAX_THREADS)
    options.inter_op_num_threads = 1
    # Threads that spin while they wait gain a tenth when alone and starve everything else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(model.weights[0]), options, providers=["CPUExecutionProvider"]
        )
    except (
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NoSuchFile,
        state.NotImplemented,
        state.RuntimeException,
    ) as error:
        raise ModelError(
            f"The model {model.name} can't be loaded by onnxruntime: {str(error)[:300]}",
            remedy="Export it again, or choose another (CORET_EMBEDDING_MODEL)",
        ) from error
