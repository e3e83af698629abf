"""Embeddings from an OpenAI-compatible endpoint (/v1/embeddings)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

from coret_pg.models.endpoint import Endpoint, open_endpoint
from coret_pg.models.vectors import encodable, unit_rows
from coret_pg.settings import Settings, openai_key

FIRST_BATCH = 64


def open_endpoint_embedder(settings: Settings) -> "EndpointEmbedder":
    """Return the embedder of an endpoint; nothing is sent yet.

    The timeout and the tries are those of the chat model. Raises ConfigurationError for a URL or
    key that can't be used, and for OpenAI's own endpoint without a key.
    """
    return EndpointEmbedder(
        open_endpoint(
            kind="embedding",
            model=settings.embedding_model,
            base_url=settings.embedding_base_url,
            key=_key(settings),
            timeout_s=settings.llm_timeout_s,
            max_retries=settings.llm_max_retries,
        )
    )


def _key(settings: Settings) -> SecretStr | None:
    """Return the key of the embedding endpoint, or None.

    Its own; else the chat model's where both have the same endpoint; else, for OpenAI's own,
    OPENAI_API_KEY. A key given for one endpoint is never sent to another.
    """
    if settings.embedding_api_key is not None:
        return settings.embedding_api_key
    if (settings.embedding_base_url or "") == (settings.llm_base_url or ""):
        return settings.api_key
    return openai_key(settings.embedding_base_url)


class EndpointEmbedder:
    """Fetch embeddings over HTTP; see Embedder for the methods."""

    provider = "openai"
    # The endpoint tells neither its weights nor its limit.
    revision = ""
    max_tokens: int | None = None

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.model
        self.is_remote = endpoint.is_remote
        self._endpoint = endpoint
        self._dimension: int | None = None
        self._batch = FIRST_BATCH

    @property
    def dimension(self) -> int:
        """Return the length of a vector; asks the endpoint where nothing was embedded yet."""
        if self._dimension is None:
            return int(self.embed_documents(["dimension"]).shape[1])
        return self._dimension

    def embed_documents(
        self, texts: Sequence[str], *, progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Return one row a text: see Embedder."""
        import openai

        parts: list[NDArray[np.float32]] = []
        done, size = 0, self._batch
        while done < len(texts):
            batch = [_sendable(text) for text in texts[done : done + size]]
            try:
                answer: Any = self._endpoint.client.embeddings.create(
                    model=self.name, input=batch, encoding_format="float"
                )
            except openai.APIStatusError as error:
                # What is too much differs between servers: texts, tokens or bytes.
                if error.status_code in {400, 413} and len(batch) > 1:
                    size = len(batch) // 2
                    continue
                raise self._endpoint.explain(error) from None
            # ValueError: a body that says it is JSON and isn't, or an empty list of vectors.
            except (openai.OpenAIError, ValueError) as error:
                raise self._endpoint.explain(error) from None
            parts.append(self._read(answer, count=len(batch)))
            if len(batch) == size:
                self._batch = size
            done += len(batch)
            if progress is not None:
                progress(done)
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    def embed_question(self, text: str) -> NDArray[np.float32]:
        """Return the vector of one question: see Embedder."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector

    def cut_texts(self, texts: Sequence[str]) -> list[bool]:
        """Return False for every text: the endpoint doesn't tell its limit."""
        return [False] * len(texts)

    def close(self) -> None:
        """Close the connections; the embedder can't be used after."""
        self._endpoint.client.close()

    def _read(self, answer: Any, *, count: int) -> NDArray[np.float32]:
        """Check an answer and return its unit vectors in the order of the request."""
        data = getattr(answer, "data", None)
        if not isinstance(data, list):
            raise self._endpoint.not_an_api(answer)
        if len(data) != count:
            raise self._bad(f"sent {len(data)} vectors for {count} texts")
        numbers = [getattr(item, "index", None) for item in data]
        if any(number is not None for number in numbers):
            if sorted(number for number in numbers if isinstance(number, int)) != list(
                range(count)
            ):
                raise self._bad("numbered its vectors wrongly (index)")
            data = sorted(data, key=lambda item: int(item.index))
        vectors = [getattr(item, "embedding", None) for item in data]
        if not all(isinstance(vector, list) and vector for vector in vectors):
            raise self._bad("sent vectors that are no lists of numbers, though asked for floats")
        lengths = sorted({len(vector) for vector in vectors if vector is not None})
        wanted = self._dimension or lengths[0]
        if lengths != [wanted]:
            raise self._bad(
                f"sent vectors of {', '.join(map(str, lengths))} numbers, expected {wanted}"
            )
        try:
            rows = np.asarray(vectors, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._bad("sent vectors with something else than numbers in them") from None
        unit = unit_rows(rows, model=self.name)
        self._dimension = wanted
        return unit

    def _bad(self, what: str) -> Exception:
        return self._endpoint.problem(
            what, remedy="Check CORET_EMBEDDING_MODEL, or use another server or model"
        )


def _sendable(text: str) -> str:
    # OpenAI refuses an empty text, and with it the whole batch.
    return encodable(text) or " "
