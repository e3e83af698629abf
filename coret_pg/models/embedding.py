"""One interface to the embedding models, and the choice of who computes them."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coret_pg.settings import Settings


class Embedder(Protocol):
    """Turn texts into unit vectors, for tables and for questions.

    Every method raises ModelError when the model fails. Rows have length 1, so that a dot
    product is the cosine. Safe to share between threads.
    """

    @property
    def provider(self) -> str:
        """Return who computes: onnx, sentence-transformers or openai."""

    @property
    def name(self) -> str:
        """Return the model's name; of a folder, its last part."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""

    @property
    def revision(self) -> str:
        """Return a hash of the weights, or "" where they are out of sight (an endpoint)."""

    @property
    def max_tokens(self) -> int | None:
        """Return how many tokens of a text are read, with the special ones; None: unknown."""

    @property
    def is_remote(self) -> bool:
        """Tell whether texts leave this host to be embedded."""

    def embed_documents(
        self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Return one row a text, in their order: (n, dimension); (0, dimension) for none.

        `progress` is called after each batch with the number of texts done so far.
        """

    def embed_question(self, text: str) -> NDArray[np.float32]:
        """Return the vector of one question: (dimension,)."""

    def cut_texts(self, texts: Sequence[str]) -> list[bool]:
        """Tell which texts are longer than max_tokens; all False where that is unknown."""

    def close(self) -> None:
        """Give back connections; the embedder can't be used after."""


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder that the settings name.

    Loads a local model at once; an endpoint is first called when something is asked of it.
    Raises ModelError for an unknown or damaged model or a missing library, ConfigurationError
    for a missing key or a bad URL.
    """
    # Each provider's library is loaded only where it is the one chosen.
    if settings.embedding_provider == "onnx":
        from coret_pg.models.onnx_embedder import open_onnx

        return open_onnx(settings.embedding_model)
    if settings.embedding_provider == "sentence-transformers":
        from coret_pg.models.sentence_transformers_embedder import open_sentence_transformers

        return open_sentence_transformers(settings.embedding_model)
    from coret_pg.models.endpoint_embedder import open_endpoint_embedder

    return open_endpoint_embedder(settings)
