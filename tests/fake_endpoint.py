"""A real HTTP server on the loopback that speaks the OpenAI-compatible API, well or badly.

    with FakeEndpoint() as endpoint:
        endpoint.answer('{"tables": []}')           # queued: the next request gets it
        endpoint.fail(429, headers={"Retry-After": "0"})
        endpoint.html()
        settings = load_settings(llm_base_url=endpoint.base_url, llm_model="fake")
        ...
        assert endpoint.requests[0].body["model"] == "fake"

Without anything queued, chat requests get `default_text` and embedding requests get vectors made
from the texts. `rule` is asked first: it may answer any request by returning a Behaviour.
"""

import contextlib
import hashlib
import json
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One request as it came in; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float

    @property
    def texts(self) -> list[str]:
        """The texts of an embedding request."""
        given = self.body["input"]
        return [given] if isinstance(given, str) else list(given)


@dataclass(frozen=True)
class Behaviour:
    """How to answer one request: the first of `cut`, `raw`, `text` or an error body that is set."""

    text: str | Callable[[Received], str] | None = None
    status: int = 200
    delay: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    content_type: str = "application/json"
    cut: bool = False  # promise a body, send a part of it, drop the connection
    finish_reason: str = "stop"
    error: str = "the fake endpoint was told to fail"
    param: str | None = None  # the request field that the error is about


class FakeEndpoint:
    """The server; use it as a context manager, or start() and stop() it."""

    def __init__(
        self,
        *,
        default_text: str | Callable[[Received], str] = "ok",
        model: str = "fake-model",
        api_key: str | None = None,
        dimension: int = 8,
        max_batch: int | None = None,
        rule: Callable[[Received], Behaviour | None] | None = None,
    ) -> None:
        self.default_text = default_text
        self.model = model
        self.api_key = api_key  # where set, another key gets 401, quoted as careless servers do
        self.dimension = dimension
        self.max_batch = max_batch  # where set, more texts than this get 400
        self.rule = rule
        self.requests: list[Received] = []
        self.errors: list[BaseException] = []
        self._queue: deque[Behaviour] = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    # --- what the next requests get

    def push(self, *behaviours: Behaviour) -> None:
        """Queue behaviours, one a request."""
        with self._lock:
            self._queue.extend(behaviours)

    def answer(self, text: str | Callable[[Received], str], **more: Any) -> None:
        """Queue an answer of the chat model: a text, or a function of the request."""
        self.push(Behaviour(text=text, **more))

    def fail(self, status: int, error: str = "told to fail", **more: Any) -> None:
        """Queue an error in the API's form; `times` queues it more than once."""
        times = more.pop("times", 1)
        self.push(*[Behaviour(status=status, error=error, **more)] * times)

    def raw(self, body: bytes | str, **more: Any) -> None:
        """Queue a body as it is."""
        self.push(Behaviour(raw=body.encode() if isinstance(body, str) else body, **more))

    def json(self, body: Any, **more: Any) -> None:
        """Queue a JSON body as it is."""
        self.raw(json.dumps(body), **more)

    def html(self, body: str = "<!doctype html><title>Sign in</title>", **more: Any) -> None:
        """Queue a web page with status 200, as a wrong base URL gives."""
        self.raw(body, content_type="text/html", **more)

    def cut(self, **more: Any) -> None:
        """Queue a connection that breaks in the middle of the body."""
        self.push(Behaviour(cut=True, **more))

    # --- where it is

    @property
    def port(self) -> int:
        assert self._server is not None, "the fake endpoint is not started"
        return int(self._server.server_address[1])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"http://{self.host}/v1"

    # --- life

    def start(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="fake-endpoint"
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._server is None or self._thread is None:
            return
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        # Idle kept-alive connections: their threads wait for a next request.
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):  # the client was faster
                    connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        # An assertion in a callable of the test fails the test, not just that request.
        if error is None and self.errors:
            raise self.errors[0]

    # --- used by the handler

    def behaviour_for(self, request: Received) -> Behaviour:
        with self._lock:
            self.requests.append(request)
        if request.path not in {"/v1/chat/completions", "/v1/embeddings", "/v1/models"}:
            return Behaviour(status=404, error=f"no such path: {request.path}")
        sent = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key is not None and sent != self.api_key:
            return Behaviour(status=401, error=f"Incorrect API key provided: {sent}")
        ruled = self.rule(request) if self.rule is not None else None
        if ruled is not None:
            return ruled
        if request.path.endswith("/embeddings") and self.max_batch is not None:
            count = len(request.texts)
            if count > self.max_batch:
                return Behaviour(status=400, error=f"batch of {count} > {self.max_batch}")
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        return Behaviour(text=self.default_text)

    def body_for(self, request: Received, behaviour: Behaviour) -> bytes:
        if behaviour.raw is not None:
            return behaviour.raw
        if behaviour.status >= 400:
            error = {"message": behaviour.error, "param": behaviour.param, "type": "fake"}
            return json.dumps({"error": error}).encode()
        if request.path.endswith("/models"):
            return json.dumps({"object": "list", "data": [{"id": self.model}]}).encode()
        if request.path.endswith("/embeddings"):
            return json.dumps(self.embedding_answer(request)).encode()
        text = behaviour.text
        content = text(request) if callable(text) else text or ""
        return json.dumps(self.chat_answer(request, content, behaviour.finish_reason)).encode()

    def chat_answer(self, request: Received, content: str, finish_reason: str) -> dict[str, Any]:
        prompt = sum(len(str(message["content"]).split()) for message in request.body["messages"])
        words = len(content.split())
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self.model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content},
                    "finish_reason": finish_reason,
                }
            ],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": words,
                "total_tokens": prompt + words,
            },
        }

    def embedding_answer(self, request: Received) -> dict[str, Any]:
        return {
            "object": "list",
            "model": self.model,
            "data": [
                {"object": "embedding", "index": index, "embedding": self.vector(text)}
                for index, text in enumerate(request.texts)
            ],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }

    def vector(self, text: str) -> list[float]:
        """The vector of a text, not of length 1: the same text always gets the same."""
        seed = text.encode("utf-8", "replace")
        digest = hashlib.shake_128(seed).digest(self.dimension)
        return [byte - 127.5 for byte in digest]

    def wait(self, seconds: float) -> None:
        """Delay an answer, but not the end of the server."""
        self._stopping.wait(seconds)

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close() waits for them
    allow_reuse_address = True

    def __init__(self, endpoint: FakeEndpoint) -> None:
        self.endpoint = endpoint
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # A client that has gone (a timeout under test) is no news.
        if error is not None and not isinstance(error, ConnectionError):
            self.endpoint.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept alive, as real servers do
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.endpoint.opened(self.connection)

    def finish(self) -> None:
        self.server.endpoint.closed(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        endpoint = self.server.endpoint
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Received(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(sent) if sent else None,
            at=time.monotonic(),
        )
        behaviour = endpoint.behaviour_for(request)
        if behaviour.delay:
            endpoint.wait(behaviour.delay)
        body = endpoint.body_for(request, behaviour)
        self.send_response(behaviour.status)
        for name, value in behaviour.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", behaviour.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour.cut:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            return
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the tests look at `requests`."""
