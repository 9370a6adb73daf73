"""A local server that speaks OpenAI's HTTP API, with behaviour that a test can script: chats by model name, and
trainings as `tests/stub_fine_tuning.py` has it.

    with StubServer() as stub:
        stub.script("flaky", rate_limited(0.2), "[message] hello")   # then "[message] hello" for ever
        ... base_url=stub.url ...
        stub.requests[0].body["messages"]

or, for a browser test or by hand: python -m tests.stub_openai --port 9100 --script "polite=[message] hello"

Models that need no script: stub-negotiator and stub-taboo play legally from the chat alone, stub-broken breaks every
rule there is, stub-500 always fails, stub-hang answers after a minute. At /embeddings stub-embeddings gives texts that
share letters vectors that are near each other.
"""

import argparse
import itertools
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.stub_fine_tuning import LOST, Refused, StubFineTuning

Messages = list[dict[str, str]]
Speaker = Callable[[Messages], str]


@dataclass(frozen=True)
class Reply:
    """One answer of the server. `content` may be None or left out (`choices=0`); `body` replaces all of it."""

    content: str | Speaker | None = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds
    body: bytes | None = None
    choices: int = 1
    usage: bool | Mapping[str, Any] = True  # whether tokens are counted, by the words; or what is said of them
    finish_reason: str = "stop"
    model: str | None = None  # the name that the server gives itself; None: the one that was asked for
    broken_off: bool = False  # the connection is closed in the middle of the body


Step = Reply | str | Speaker


def rate_limited(retry_after: float | str | None = None) -> Reply:
    """429, with or without Retry-After, in seconds or as a date."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Reply("You have sent too many requests.", status=429, headers=headers)


def failing(times: int, then: Step, status: int = 500) -> list[Step]:
    """A server error so many times, then `then`."""
    return [*([Reply("The server had an error.", status=status)] * times), then]


def hanging(seconds: float) -> Reply:
    """An answer that takes so long."""
    return Reply("[message] sorry, I was away", delay=seconds)


KEY = "sk-secret-0123456789-abcdefghij"  # which no message, log or page may ever show
GARBAGE = Reply(body=b"<html>502 Bad Gateway \xff</html>")
HALF = Reply("[message] I was about to say", broken_off=True)
NO_CHOICES = Reply(choices=0)
NO_CONTENT = Reply(None)


@dataclass(frozen=True)
class Request:
    """What came in: when (monotonic seconds), where, with which headers and body."""

    at: float
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: dict[str, Any]


# ---- Built-in models -----------------------------------------------------------

_OPENING = "I would like all the books. You can have the hats and the balls."
_TABOO_LINES = (
    "Hm, let us begin gently.",
    "Why do you ask?",
    "I see. Do go on.",
    "I did not expect it.",
    "How so?",
    "Perhaps, perhaps not.",
)


def negotiator(messages: Messages) -> str:
    """One message, then a proposal that complements another stub-negotiator's; the counts are read in the rules."""
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    if not said:
        agrees = _OPENING in messages[0]["content"]
        return "[message] Agreed: the hats and the balls for me." if agrees else f"[message] {_OPENING}"
    books, hats, balls = (_count_of(item, messages[0]["content"]) for item in ("books", "hats", "balls"))
    if _OPENING in said[0]:
        return f"[propose] ({books} books, 0 hats, 0 balls)"
    return f"[propose] (0 books, {hats} hats, {balls} balls)"


def taboo_player(messages: Messages) -> str:
    """Small talk without a noun in it, in either role; it neither guesses nor gives the word away."""
    own = sum(message["role"] == "assistant" for message in messages)
    return _TABOO_LINES[own % len(_TABOO_LINES)]


def _count_of(item: str, rules: str) -> int:
    found = re.search(rf"^{item}: (\d+)", rules, re.MULTILINE)
    return int(found[1]) if found else 0


def _built_in() -> dict[str, Iterator[Step]]:
    return {
        "stub-negotiator": itertools.repeat(negotiator),
        "stub-taboo": itertools.repeat(taboo_player),
        "stub-broken": itertools.repeat(""),  # no game takes an empty move
        "stub-500": itertools.repeat(Reply("The server had an error.", status=500)),
        "stub-hang": itertools.repeat(hanging(60)),
        "stub-embeddings": itertools.repeat(""),
    }


# ---- The server ------------------------------------------------------------------


class StubServer:
    """The server, on a free port of 127.0.0.1 unless one is given. `key`: the only API key that it takes, if any."""

    def __init__(self, port: int = 0, key: str | None = None) -> None:
        self.requests: list[Request] = []
        self.key = key
        self.listed: dict[str, dict[str, Any]] = {}  # what its list of models says of some of them
        self.fine_tuning = StubFineTuning()
        self.stopping = threading.Event()
        self._scripts = _built_in()
        self._answers: dict[str, Callable[[Request], Reply]] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), type("Handler", (self.handler,), {"stub": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def handler(self) -> "type[StubHandler]":
        """What answers a connection."""
        return StubHandler

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def models(self) -> list[str]:
        return sorted(self._scripts)

    def script(self, model: str, *steps: Step) -> None:
        """What `model` answers, request by request; the last step repeats for ever."""
        with self._lock:
            self._scripts[model] = itertools.chain(steps[:-1], itertools.repeat(steps[-1]))

    def answer_with(self, model: str, answer: Callable[["Request"], Reply]) -> None:
        """What `model` answers follows from the whole request."""
        with self._lock:
            self._answers[model] = answer

    def requests_of(self, model: str) -> list[Request]:
        return [request for request in list(self.requests) if request.body.get("model") == model]

    def answer(self, request: Request) -> Reply:
        """The scripted reply to a request, with its content worked out."""
        with self._lock:
            self.requests.append(request)
            model = str(request.body.get("model"))
            if model in self._answers:
                return self._answers[model](request)
            script = self._scripts.get(model)
            step = next(script) if script else Reply("The model does not exist.", status=404)
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            sent = request.headers.get("authorization", "no key")
            return Reply(f"Incorrect API key provided: {sent}.", status=401)
        reply = step if isinstance(step, Reply) else Reply(step)
        if callable(reply.content):
            reply = replace(reply, content=reply.content(request.body["messages"]))
        return reply

    def __enter__(self) -> "StubServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up, after its own timeout say, is no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class StubHandler(BaseHTTPRequestHandler):
    stub: StubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave in one packet

    def do_DELETE(self) -> None:
        if not self._train(b""):
            self._send(404, _json(_error("No such page.")))

    def do_GET(self) -> None:
        if self._train(b""):
            return
        owned = {"object": "model", "created": 0, "owned_by": "stub"}
        listed = [{"id": model, **owned, **self.stub.listed.get(model, {})} for model in self.stub.models]
        found = self.path.rstrip("/").endswith("/models")
        self._send(
            200 if found else 404, _json({"object": "list", "data": listed} if found else _error("No such page."))
        )

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        if len(raw) < length:  # whoever asked was killed meanwhile
            self.close_connection = True
            return None
        if self._train(raw):
            return None
        completes = {"/chat/completions": _completion, "/embeddings": _embeddings}
        answer = next((each for end, each in completes.items() if self.path.endswith(end)), None)
        if answer is None:
            return self._send(404, _json(_error("No such page.")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(time.monotonic(), self.path, headers, json.loads(raw))
        reply = self.stub.answer(request)
        if reply.delay and self.stub.stopping.wait(reply.delay):
            self.close_connection = True
            return None
        if reply.body is not None:
            body = reply.body
        else:
            body = _json(answer(request, reply) if reply.status == 200 else _error(str(reply.content)))
        if reply.broken_off:
            self.close_connection = True
            return self._send(reply.status, body[: len(body) // 2], reply.headers, announced=len(body))
        return self._send(reply.status, body, reply.headers)

    def _train(self, raw: bytes) -> bool:
        """Answer a call about files or trainings; False if it is none."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            if self.stub.key is not None and headers.get("authorization") != f"Bearer {self.stub.key}":
                raise Refused(401, f"Incorrect API key provided: {headers.get('authorization', 'none')}.")
            found = self.stub.fine_tuning.handle(self.command, self.path, headers, raw)
        except Refused as refused:
            self._send(refused.status, _json(_error(str(refused), refused.code)))
            return True
        if found is None:
            return False
        scripted, body = found
        if scripted == LOST:
            self.close_connection = True
        elif scripted is not None:
            code = scripted.headers.get("x-code")
            error = _json(_error(str(scripted.content), code))
            self._send(scripted.status, error if scripted.body is None else scripted.body, scripted.headers)
        else:
            self._send(200, _json(body))
        return True

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, announced: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if announced is None else announced))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet: tests look at `requests`."""


def _completion(request: Request, reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.content}
    answer: dict[str, Any] = {
        "id": f"chatcmpl-{len(request.body['messages'])}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": reply.model or request.body["model"],
        "choices": [
            {"index": index, "message": message, "finish_reason": reply.finish_reason} for index in range(reply.choices)
        ],
    }
    if isinstance(reply.usage, Mapping):
        answer["usage"] = reply.usage
    elif reply.usage:
        prompt = sum(len(sent["content"].split()) for sent in request.body["messages"])
        completion = len(str(reply.content or "").split())
        answer["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
    return answer


def _embeddings(request: Request, reply: Reply) -> dict[str, Any]:
    """Of each text how often it has each letter, the last text first: servers may answer in any order."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    texts = [text.lower() for text in request.body["input"]]
    data = [
        {"object": "embedding", "index": at, "embedding": [text.count(letter) for letter in letters]}
        for at, text in enumerate(texts)
    ]
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data[::-1], "model": reply.model or request.body["model"], "usage": usage}


def _error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "stub_error", "param": None, "code": code}}


def _json(body: object) -> bytes:
    return json.dumps(body).encode()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.stub_openai", description="A local chat-completions stub.")
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1; 0: a free one")
    parser.add_argument("--key", help="the only API key that it takes; none: any or no key")
    parser.add_argument("--script", action="append", default=[], metavar="MODEL=TEXT", help="a fixed reply of a model")
    options = parser.parse_args(arguments)
    with StubServer(options.port, options.key) as stub:
        for script in options.script:
            model, _, text = script.partition("=")
            stub.script(model, text)
        print(stub.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
