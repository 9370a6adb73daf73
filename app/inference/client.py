"""A worker's client to the process of local models: it uses one connection, opened when needed.

A process that is unavailable, or dies during an answer, is treated like an unavailable server: BUSY. The supervisor
restarts it.
"""

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from app.core.failures import BUSY, REFUSED
from app.inference.protocol import (
    CANCEL,
    COMPLETE,
    FIGURES,
    IS_LOADED,
    RELEASE_CACHES,
    Message,
    TooLong,
    checkpoint_arguments,
    complete_arguments,
    encode,
    read_message,
    read_result,
)
from app.inference.requests import Checkpoint, Completion, GenerationFailure, GenerationRequest

GLANCE = 1.0  # seconds within which the process says whether a model is loaded, unless it is busy loading one


class ProcessAway(Exception):
    """The process of local models does not answer. The message is one line."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the process of local models {what}")


class CallBroke(Exception):
    """An unforeseen error in an engine, in one line; the log of its process has more."""


class EngineProcess:
    """The process that listens on a socket. May be called from several event loops; each has a connection."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._links: WeakKeyDictionary[asyncio.AbstractEventLoop, _Link] = WeakKeyDictionary()

    async def complete(
        self, checkpoint: Checkpoint, request: GenerationRequest, most: int
    ) -> Completion | GenerationFailure:
        """The result of `scheduler.complete` in the process. Raises CallBroke."""
        try:
            return read_result(await self._call_process(COMPLETE, complete_arguments(checkpoint, request, most)))
        except ProcessAway as away:
            return GenerationFailure(str(away), BUSY)
        except TooLong as error:
            return GenerationFailure(f"the chat is too long for the process of local models: {error}", REFUSED)

    async def is_loaded(self, checkpoint: Checkpoint) -> bool:
        """Whether the model is in memory; False if the process is unavailable, or too busy loading to answer."""
        try:
            async with asyncio.timeout(GLANCE):
                return bool(await self._call_process(IS_LOADED, checkpoint_arguments(checkpoint)))
        except (ProcessAway, TimeoutError):
            return False

    async def release_caches(self) -> None:
        """Release the cached conversations of this worker, unless another worker is using the model."""
        with contextlib.suppress(ProcessAway):
            await self._call_process(RELEASE_CACHES, {})

    async def figures(self) -> list[dict[str, Any]]:
        """The figures of all its engines, as JSON of EngineFigures. Raises ProcessAway."""
        found: list[dict[str, Any]] = await self._call_process(FIGURES, {})
        return found

    async def _call_process(self, name: str, arguments: Message) -> Any:
        link = self._links.setdefault(asyncio.get_running_loop(), _Link(self._socket))
        return await link.call(name, arguments)


class _Link:
    """The connection of one event loop, reopened after it is lost."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._opening = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def call(self, name: str, arguments: Message) -> Any:
        """The value of a call; cancelling it here cancels it there. Raises ProcessAway, CallBroke and TooLong."""
        number = next(self._numbers)
        message = encode({"number": number, "call": name, "arguments": arguments})
        writer = await self._open_connection()
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            writer.write(message)
            await writer.drain()
            return await answer
        except OSError:
            raise ProcessAway("has closed the connection") from None
        finally:
            if self._waiting.pop(number, None) is not None and not writer.is_closing():
                writer.write(encode({"number": number, "call": CANCEL}))

    async def _open_connection(self) -> asyncio.StreamWriter:
        async with self._opening:
            if self._writer is None:
                try:
                    reader, self._writer = await asyncio.open_unix_connection(self._socket)
                except OSError as error:
                    raise ProcessAway(f"does not answer ({error.strerror or error})") from None
                self._reading = asyncio.create_task(self._deliver_answers(reader, self._writer))
            return self._writer

    async def _deliver_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Deliver answers until the process closes the connection; then fail all waiting calls."""
        try:
            with contextlib.suppress(OSError):
                while (message := await read_message(reader)) is not None:
                    waiting = self._waiting.pop(message["number"], None)
                    if waiting is None or waiting.done():  # it was given up meanwhile
                        continue
                    if "broke" in message:
                        waiting.set_exception(CallBroke(message["broke"]))
                    else:
                        waiting.set_result(message["value"])
        finally:
            self._writer = None
            writer.close()
            given_up, self._waiting = self._waiting, {}
            for waiting in given_up.values():
                if not waiting.done():
                    waiting.set_exception(ProcessAway("has ended"))
