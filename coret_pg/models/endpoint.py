"""OpenAI-compatible endpoints: opening a client, and telling what went wrong without secrets."""

import ipaddress
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from coret_pg.errors import ConfigurationError, ModelError
from coret_pg.settings import OPENAI_HOST

if TYPE_CHECKING:
    import openai

Kind = Literal["chat", "embedding"]

# The openai client insists on a key; servers that need none ignore it.
NO_KEY = "no-key-needed"
QUOTED_CHARACTERS = 300
URL_VARIABLE = {"chat": "CORET_LLM_BASE_URL", "embedding": "CORET_EMBEDDING_BASE_URL"}
MODEL_VARIABLE = {"chat": "CORET_LLM_MODEL", "embedding": "CORET_EMBEDDING_MODEL"}
KEY_VARIABLE = {"chat": "CORET_LLM_API_KEY", "embedding": "CORET_EMBEDDING_API_KEY"}


@dataclass(frozen=True)
class Endpoint:
    """One endpoint and model, with what its errors may show and must hide."""

    client: "openai.OpenAI" = field(repr=False)
    kind: Kind
    host: str
    model: str
    timeout_s: float
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def title(self) -> str:
        """Return how errors name it, as "the chat endpoint host:port"."""
        return f"the {self.kind} endpoint {self.host}"

    @property
    def is_remote(self) -> bool:
        """Tell whether what is sent to it leaves this host; a name is taken for one elsewhere."""
        name = urlsplit(f"//{self.host}").hostname or ""
        if name == "localhost":
            return False
        try:
            return not ipaddress.ip_address(name).is_loopback
        except ValueError:
            return True

    def quote(self, text: object) -> str:
        """Return a server's text on one line, without secrets, cut to 300 characters."""
        line = " ".join(str(text).split())
        # Before the cut: half a key must not stay behind.
        for secret in self.secrets:
            line = line.replace(secret, "***")
        return line if len(line) <= QUOTED_CHARACTERS else line[: QUOTED_CHARACTERS - 3] + "..."

    def problem(self, what: str, *, remedy: str) -> ModelError:
        """Return the error for an answer that can't be used."""
        return ModelError(f"{self.title[0].upper()}{self.title[1:]} {what}", remedy=remedy)

    def explain(self, error: Exception) -> ModelError:
        """Return the error that tells what happened to a request, and what to do next.

        Raise it `from None`: the original may quote the key.
        """
        import openai

        url = URL_VARIABLE[self.kind]
        if isinstance(error, openai.APITimeoutError):
            return self.problem(
                f"gave no answer within {self.timeout_s:g} s",
                remedy="Raise CORET_LLM_TIMEOUT_S, or use a smaller model",
            )
        if isinstance(error, openai.APIStatusError):
            return self._explain_status(error)
        if isinstance(error, openai.APIConnectionError):
            return self.problem(
                f"can't be reached: {self._reason(error)}",
                remedy=f"Check that it runs and that {url} names it",
            )
        return self.problem(
            f"sent an answer that can't be read: {self.quote(error)}",
            remedy=f"Check that {url} is the base URL of an OpenAI-compatible API (often .../v1)",
        )

    def not_an_api(self, answer: Any) -> ModelError:
        """Return the error for an answer of status 200 that is no API answer, such as HTML."""
        # The client parses any JSON object into its model of an answer, leniently.
        if hasattr(answer, "to_json"):
            answer = answer.to_json(indent=None, warnings=False)
        return self.problem(
            f"answered with something else than the API's JSON: {self.quote(answer)}",
            remedy=f"Check that {URL_VARIABLE[self.kind]} is the base URL of an "
            "OpenAI-compatible API (often .../v1)",
        )

    def _explain_status(self, error: "openai.APIStatusError") -> ModelError:
        status = error.status_code
        said = self.quote(message_of(error))
        key = KEY_VARIABLE[self.kind]
        if status == 401:
            # Not quoted: servers echo parts of the key.
            return self.problem(
                "refused the key (HTTP 401)",
                remedy=f"Set {key} to a valid key for it"
                + (", or OPENAI_API_KEY" if self.kind == "chat" else ""),
            )
        if status == 403:
            return self.problem(
                f"forbids this key the request (HTTP 403): {said}",
                remedy=f"Check what the key in {key} may use",
            )
        if status == 404:
            return self.problem(
                f"knows no model {self.model!r}, or no such path (HTTP 404): {said}",
                remedy=f"Check {MODEL_VARIABLE[self.kind]}, and that {URL_VARIABLE[self.kind]} "
                "is the base URL (often .../v1)",
            )
        if status == 429:
            return self.problem(
                f"refuses further requests for now (HTTP 429): {said}",
                remedy="Wait and try again, check the quota, or raise CORET_LLM_MAX_RETRIES",
            )
        if is_too_long(error):
            return self.problem(
                f"can't take so long a request (HTTP {status}): {said}",
                remedy="Use a model with a larger context, or send less (a smaller --k)"
                if self.kind == "chat"
                else "Use an embedding model that reads longer texts",
            )
        if status >= 500:
            return self.problem(
                f"failed (HTTP {status}): {said}",
                remedy="Look at that server's log, or try again later",
            )
        return self.problem(
            f"refused the request (HTTP {status}): {said}",
            remedy=f"Check {MODEL_VARIABLE[self.kind]} and {URL_VARIABLE[self.kind]}",
        )

    def _reason(self, error: BaseException) -> str:
        chain = list(_causes(error))
        for cause in chain:
            if isinstance(cause, socket.gaierror):
                return "its name can't be resolved"
            if isinstance(cause, ConnectionRefusedError):
                return "it refuses connections"
            if isinstance(cause, ssl.SSLError):
                return f"the TLS connection failed ({self.quote(cause)})"
        return self.quote(chain[-1]) or type(chain[-1]).__name__


def message_of(error: "openai.APIStatusError") -> str:
    """Return the server's own words where it sent them in the API's form, else the whole text."""
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return message if isinstance(message, str) and message else error.message


def is_too_long(error: "openai.APIStatusError") -> bool:
    """Tell whether the server refused a request for its length."""
    said = error.message.lower()
    return (
        error.status_code == 413
        or error.code == "context_length_exceeded"
        or any(
            words in said
            for words in ("context length", "context size", "context window", "prompt is too long")
        )
    )


def open_endpoint(
    *,
    kind: Kind,
    model: str,
    base_url: str | None,
    key: SecretStr | None,
    timeout_s: float,
    max_retries: int,
) -> Endpoint:
    """Return the endpoint with an openai client; nothing is sent yet.

    Without a base URL it is OpenAI's, or the one in OPENAI_BASE_URL (the client reads it).
    Raises ConfigurationError for a URL or key that can't be used, and for OpenAI's own endpoint
    without a key.
    """
    import openai

    secret = (key.get_secret_value().strip() if key is not None else "") or None
    if secret is not None and not (secret.isascii() and secret.isprintable()):
        raise ConfigurationError(
            f"The key of the {kind} endpoint holds characters that no key has",
            remedy=f"Set {KEY_VARIABLE[kind]} again",
        )
    if base_url:
        _host(base_url, kind)
    client = openai.OpenAI(
        api_key=secret or NO_KEY,
        base_url=base_url or None,
        timeout=timeout_s,
        max_retries=max_retries,
    )
    url = str(client.base_url)
    host = _host(url, kind)
    if secret is None and host == OPENAI_HOST:
        client.close()
        raise ConfigurationError(
            f"OpenAI's {kind} endpoint needs a key, and none is set",
            remedy=f"Set {KEY_VARIABLE[kind]} or OPENAI_API_KEY, or {URL_VARIABLE[kind]} for "
            "another endpoint",
        )
    parts = urlsplit(url)
    in_url = {part for part in (parts.password, unquote(parts.password or "")) if part}
    return Endpoint(
        client=client,
        kind=kind,
        host=host,
        model=model,
        timeout_s=timeout_s,
        secrets=tuple(sorted(in_url | ({secret} if secret else set()), key=len, reverse=True)),
    )


def _host(url: str, kind: Kind) -> str:
    """Return host or host:port of a base URL, without user and password.

    Raises ConfigurationError, which never shows the URL: it may hold a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigurationError(
            f"The base URL of the {kind} endpoint can't be used",
            remedy=f"Give {URL_VARIABLE[kind]} as http://host:port/v1 or https://host/v1",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return host if port is None else f"{host}:{port}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
