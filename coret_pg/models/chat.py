"""The chat model, at any OpenAI-compatible endpoint."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from coret_pg.models.endpoint import Endpoint, is_too_long, open_endpoint
from coret_pg.models.vectors import encodable
from coret_pg.settings import Settings

if TYPE_CHECKING:
    import openai

# From the strongest to none. Some servers take a schema in the older json_object form only.
FORMS = ("json_schema", "json_object with schema", "json_object", "none")


@dataclass(frozen=True)
class ChatAnswer:
    """One answer of a chat model.

    `finish_reason` "length" means that the text is cut. `seconds` is the whole call, retries and
    fallbacks included; token counts are None where the server gives none.
    """

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    finish_reason: str | None
    seconds: float
    model: str


class Abandoned(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True)
class Patience:
    """How long a call is worth waiting for: until so much on time.monotonic(), while wanted."""

    until: float
    is_wanted: Callable[[], bool]


@dataclass(frozen=True)
class _Dialect:
    """What this server takes, learned from what it refused."""

    form: int = 0
    temperature: bool = True
    limit: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"


class ChatModel:
    """A chat model at one endpoint, that remembers which request forms its server takes."""

    def __init__(self, endpoint: Endpoint, *, keeps_prompts: bool = True) -> None:
        self._endpoint = endpoint
        self.keeps_prompts = keeps_prompts
        self._cancellable: _Cancellable | None = None
        self._lock = Lock()
        self._dialect = _Dialect()

    @property
    def model(self) -> str:
        """Return the model's name as it is asked for."""
        return self._endpoint.model

    @property
    def endpoint(self) -> str:
        """Return the endpoint as host or host:port, never with credentials."""
        return self._endpoint.host

    @property
    def is_remote(self) -> bool:
        """Tell whether what is sent leaves this host."""
        return self._endpoint.is_remote

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        json_schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        patience: Patience | None = None,
    ) -> ChatAnswer:
        """Return the model's answer to the messages, at temperature 0.

        With a schema the server is asked to keep to it, in the strongest form it takes; it may
        take none, so the text is still to be parsed with care. Raises ModelError for every
        failure: no connection, a timeout, an HTTP error, an answer without text. Takes up to
        llm_timeout_s for each of 1 + llm_max_retries tries. With `patience` the request is dropped
        earlier: ModelError once its time is over, Abandoned once nobody wants the answer.
        """
        import openai

        started = time.perf_counter()
        sent = [{key: encodable(text) for key, text in message.items()} for message in messages]
        dialect = self._dialect
        while True:
            request = _request(self.model, sent, json_schema, max_tokens, dialect)
            try:
                answer: Any = self._send(request, patience)
            except openai.APIStatusError as error:
                adapted = _adapt(dialect, request, error)
                if adapted is None:
                    raise self._endpoint.explain(error) from None
                dialect = adapted
            # ValueError: a body that says it is JSON and isn't.
            except (openai.OpenAIError, ValueError) as error:
                raise self._endpoint.explain(error) from None
            else:
                break
        result = self._read(answer, seconds=time.perf_counter() - started)
        # Only now: a refusal with another cause must not weaken later requests.
        self._dialect = dialect
        return result

    def close(self) -> None:
        """Close the connections; the model can't be used after."""
        self._endpoint.client.close()
        if self._cancellable is not None:
            self._cancellable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, request: Mapping[str, Any], patience: Patience | None) -> Any:
        if patience is None:
            return self._endpoint.client.chat.completions.create(**request)
        with self._lock:
            if self._cancellable is None:
                self._cancellable = _Cancellable(self._endpoint)
        return self._cancellable.send(request, patience)

    def _read(self, answer: Any, *, seconds: float) -> ChatAnswer:
        choices = getattr(answer, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        if message is None:
            # Some gateways report an error with status 200.
            error = getattr(answer, "error", None)
            if error:
                raise self._endpoint.problem(
                    f"reported an error: {self._endpoint.quote(_message_of(error))}",
                    remedy="Look at that server's log, or try again later",
                )
            raise self._endpoint.not_an_api(answer)
        reason = getattr(choice, "finish_reason", None)
        text = getattr(message, "content", None)
        if not isinstance(text, str) or not text.strip():
            raise self._no_text(message, reason)
        usage = getattr(answer, "usage", None)
        model = getattr(answer, "model", None)
        return ChatAnswer(
            text=text,
            prompt_tokens=_count(getattr(usage, "prompt_tokens", None)),
            completion_tokens=_count(getattr(usage, "completion_tokens", None)),
            finish_reason=reason if isinstance(reason, str) else None,
            seconds=seconds,
            model=model if isinstance(model, str) and model else self.model,
        )

    def _no_text(self, message: Any, reason: object) -> Exception:
        refusal = getattr(message, "refusal", None)
        if refusal:
            return self._endpoint.problem(
                f"refused to answer: {self._endpoint.quote(refusal)}",
                remedy="Use another model (CORET_LLM_MODEL)",
            )
        if reason == "length":
            return self._endpoint.problem(
                "used up its output limit before any text (a reasoning model thinks first)",
                remedy="Allow more tokens, or use a model that doesn't reason at length",
            )
        return self._endpoint.problem(
            f"gave an answer without text (finish_reason {reason})",
            remedy="Try again, or use another model (CORET_LLM_MODEL)",
        )


class _Cancellable:
    """Requests that can be dropped while the server still thinks: on an event loop of their own."""

    _LOOK_S = 0.2

    def __init__(self, endpoint: Endpoint) -> None:
        import openai

        client = endpoint.client
        self._endpoint = endpoint
        self._client = openai.AsyncOpenAI(
            api_key=client.api_key,
            base_url=client.base_url,
            timeout=client.timeout,
            max_retries=client.max_retries,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="coret chat", daemon=True)
        self._thread.start()

    def send(self, request: Mapping[str, Any], patience: Patience) -> Any:
        """Return the answer; raise ModelError or Abandoned where patience ends before it."""
        sending = asyncio.run_coroutine_threadsafe(
            self._client.chat.completions.create(**request), self._loop
        )
        while True:
            try:
                return sending.result(self._LOOK_S)
            except TimeoutError:
                if sending.done():
                    continue
                late, wanted = time.monotonic() > patience.until, patience.is_wanted()
                if wanted and not late:
                    continue
                sending.cancel()
                if wanted:
                    raise self._endpoint.problem(
                        "gave no answer within the time its caller waits",
                        remedy="Ask with a longer timeout_s, or use a faster model",
                    ) from None
                raise Abandoned from None

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def open_chat(settings: Settings) -> ChatModel | None:
    """Return the chat model of the settings, or None where they name none.

    Nothing is sent yet. Raises ConfigurationError for a URL or key that can't be used, and for
    OpenAI's own endpoint without a key.
    """
    if not settings.llm_model:
        return None
    return ChatModel(
        open_endpoint(
            kind="chat",
            model=settings.llm_model,
            base_url=settings.llm_base_url,
            key=settings.api_key,
            timeout_s=settings.llm_timeout_s,
            max_retries=settings.llm_max_retries,
        ),
        keeps_prompts=settings.ledger_prompts == "text",
    )


def _request(
    model: str,
    messages: list[dict[str, str]],
    schema: Mapping[str, Any] | None,
    max_tokens: int | None,
    dialect: _Dialect,
) -> dict[str, Any]:
    request: dict[str, Any] = {"model": model, "messages": messages}
    if dialect.temperature:
        request["temperature"] = 0
    if max_tokens is not None and dialect.limit:
        request[dialect.limit] = max_tokens
    form = FORMS[dialect.form]
    if schema is not None and form == "json_schema":
        request["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)},
        }
    elif schema is not None and form != "none":
        request["response_format"] = {"type": "json_object"}
        if form == "json_object with schema":
            request["response_format"]["schema"] = dict(schema)
    return request


def _adapt(
    dialect: _Dialect, request: Mapping[str, Any], error: "openai.APIStatusError"
) -> _Dialect | None:
    """Return what to try next after a refusal, or None where nothing is left to change.

    Each step gives up one thing for good, so a call makes at most seven requests.
    """
    if error.status_code not in {400, 422, 500} or is_too_long(error):
        return None
    said = f"{error.param or ''} {error.message}".lower()
    if error.status_code != 500:
        if "temperature" in said and "temperature" in request:
            return replace(dialect, temperature=False)
        if "max_completion_tokens" in request and "max_completion_tokens" in said:
            return replace(dialect, limit="")
        if "max_tokens" in request and "max_tokens" in said:
            return replace(dialect, limit="max_completion_tokens")
    if "response_format" in request:
        return replace(dialect, form=dialect.form + 1)
    return None


def _message_of(error: object) -> object:
    return error.get("message") or error if isinstance(error, dict) else error


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
