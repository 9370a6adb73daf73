"""A chat-completions server that costs next to nothing: fixed latency, legal moves, counted tokens.

    with running(latency=0.2) as url:
        ... base_url=url ...

or by hand: python -m bench.stub --latency 0.2

It reads as much of HTTP as its clients write: one request after the other on a connection, bodies with Content-Length.
"""

import argparse
import asyncio
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import PIPE, Popen
from sys import executable

CALLS_A_MATCH = 8

Answer = Callable[[bytes], str]

_OPENING = "I would like all of it, and I will tell you why."
_ITEMS = re.compile(rb"books: (\d+), .*?hats: (\d+), .*?balls: (\d+), ")
_OWN = b'"assistant"'  # never inside a text, where both quotes are escaped
_LENGTH = b"content-length:"


def negotiator(body: bytes) -> str:
    """A move of a negotiation of CALLS_A_MATCH moves that ends in a deal: three messages a side, then a proposal.

    Whoever began takes everything. The chat alone shows who: their opening comes after their first turn.
    """
    own = body.count(_OWN)
    opening = body.find(_OPENING.encode())
    if own == 0:
        return "[message] Go on, I am listening." if opening >= 0 else f"[message] {_OPENING}"
    if own < 3:
        return f"[message] That is my reason number {own}, and I think that it is a good one."
    items = _ITEMS.search(body)
    if items is None or opening < body.find(_OWN):
        return "[propose] (0 books, 0 hats, 0 balls)"
    books, hats, balls = (int(number) for number in items.groups())
    return f"[propose] ({books} books, {hats} hats, {balls} balls)"


def rater(body: bytes) -> str:
    """A society's answer to any question: a rating and a reason, determined by the chat alone."""
    drawn = zlib.crc32(body)
    return (
        f"Rating: {1 + drawn % 7}\nReason: one should think of the others as well, as I have said {drawn % 97} times."
    )


ANSWERS: Mapping[str, Answer] = {"negotiator": negotiator, "rater": rater}


class _Connection(asyncio.Protocol):
    def __init__(self, answer: Answer, latency: float) -> None:
        self._answer = answer
        self._latency = latency
        self._loop = asyncio.get_running_loop()
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        end = self._got.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        head = self._got[:end].lower()
        at = head.find(_LENGTH) + len(_LENGTH)
        whole = end + (int(head[at : head.index(b"\r", at)]) if at >= len(_LENGTH) else 0)
        if len(self._got) >= whole:
            response = _response(self._answer(self._got[end:whole]), whole - end)
            self._got = self._got[whole:]
            self._loop.call_later(self._latency, self._transport.write, response)


def _response(text: str, length: int) -> bytes:
    prompt, completion = length // 4, len(text) // 4
    body = (
        '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"stub","choices":[{"index":0,'
        f'"message":{{"role":"assistant","content":{json.dumps(text)}}},"finish_reason":"stop"}}],'
        f'"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{prompt + completion}}}}}'
    ).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


async def serve(answer: Answer, latency: float, port: int = 0) -> None:
    """Serve forever at 127.0.0.1; the address is printed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(answer, latency), "127.0.0.1", port, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


@contextmanager
def running(latency: float, answer: str = "negotiator") -> Iterator[str]:
    """The server in its own process, answering as one of ANSWERS; yields the base URL for a client."""
    command = [executable, "-m", "bench.stub", "--latency", str(latency), "--answer", answer]
    with Popen(command, stdout=PIPE, encoding="utf-8") as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve one of ANSWERS until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bench.stub", description="A chat-completions server for benches.")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds from request to answer")
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1; 0: a free one")
    parser.add_argument("--answer", choices=tuple(ANSWERS), default="negotiator", help="who answers (negotiator)")
    options = parser.parse_args(arguments)
    try:
        asyncio.run(serve(ANSWERS[options.answer], options.latency, options.port))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
