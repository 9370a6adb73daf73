"""The server of the local models' process: it listens on a unix socket and passes workers' calls to its engines.

Whoever may open the socket's file may call; its folder belongs to one user alone. Each worker has one connection, and
when that closes, its unfinished answers are given up.
"""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import structlog

from app.core.errors import Conflict, Verbatim
from app.inference import scheduler
from app.inference.protocol import (
    CANCEL,
    COMPLETE,
    FIGURES,
    IS_LOADED,
    RELEASE_CACHES,
    Message,
    TooLong,
    encode,
    read_checkpoint,
    read_message,
    read_request,
    result_value,
)
from app.inference.requests import Checkpoint

log = structlog.get_logger()


class EngineServer:
    """All connections of one socket."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._clients: set[_Client] = set()

    async def start(self, socket: Path) -> None:
        """Listen. Raises Conflict where another process does, and OSError."""
        with contextlib.suppress(OSError):  # nobody listens, or the file is not there
            _, writer = await asyncio.open_unix_connection(socket)
            writer.close()
            raise Conflict(
                None,
                expected="no other process that holds local models for this PARLOR_HOME",
                got=Verbatim(f"one that listens on {socket}"),
                remedy="stop that one, or choose another PARLOR_HOME",
            )
        self._server = await asyncio.start_unix_server(self._attend, socket)

    def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.end()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(writer, self._clients)
        self._clients.add(client)
        try:
            while (message := await read_message(reader)) is not None:
                client.take(message)
        except (TooLong, ValueError, KeyError) as error:
            log.warning("a worker's message cannot be read, its connection is closed", error=str(error))
        except OSError:
            pass  # it is gone
        finally:
            self._clients.discard(client)
            client.end()


class _Client:
    """One connection, and its calls in progress."""

    def __init__(self, writer: asyncio.StreamWriter, others: set["_Client"]) -> None:
        self._writer = writer
        self._others = others  # all connections, this one included
        self._asked: set[Checkpoint] = set()
        self._calls: dict[int, asyncio.Task[None]] = {}

    def take(self, message: Message) -> None:
        """Start a call, or cancel one. Raises KeyError."""
        number, call = message["number"], message["call"]
        if call == CANCEL:
            if (known := self._calls.get(number)) is not None:
                known.cancel()
            return
        self._calls[number] = asyncio.create_task(self._answer_call(number, call, message["arguments"]))
        self._calls[number].add_done_callback(lambda _: self._calls.pop(number, None))

    def end(self) -> None:
        """Cancel all calls, and close."""
        for call in list(self._calls.values()):
            call.cancel()
        self._writer.close()

    async def _answer_call(self, number: int, call: str, arguments: Message) -> None:
        try:
            answer = encode({"number": number, "value": await self._execute_call(call, arguments)})
        except Exception as error:  # from an engine, which has logged it, or a message sent by another version
            line = " ".join(str(error).split())
            answer = encode({"number": number, "broke": f"{type(error).__name__}: {line}"})
        with contextlib.suppress(OSError):
            self._writer.write(answer)
            await self._writer.drain()

    async def _execute_call(self, call: str, arguments: Message) -> Any:
        if call == COMPLETE:
            checkpoint = read_checkpoint(arguments["checkpoint"])
            self._asked.add(checkpoint)
            request = read_request(arguments["request"], asyncio.get_running_loop())
            return result_value(await scheduler.complete(checkpoint, request, arguments["most"]))
        if call == IS_LOADED:
            return scheduler.is_loaded(read_checkpoint(arguments))
        if call == FIGURES:
            return [figures.to_json() for figures in scheduler.engine_figures()]
        if call == RELEASE_CACHES:
            # Checkpoints that others also use stay: people may be in conversations with them.
            of_others = set[Checkpoint]().union(*(each._asked for each in self._others if each is not self))
            released, self._asked = self._asked - of_others, set()
            return await asyncio.to_thread(scheduler.release_caches, released)
        raise ValueError(f"expected a call that this version knows, got {call!r}")
