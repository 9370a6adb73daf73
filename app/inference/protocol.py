"""The protocol between workers and the process of local models: JSON objects, each prefixed with its length in bytes.

A worker's message has a `number`, the name of a `call` and its `arguments`; the answer has the number and a `value`, or
`broke`, an error line. The call `cancel` has the number of another call, which is then not answered. Imports no torch.
"""

import asyncio
import json
import struct
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from app.inference.requests import Checkpoint, Completion, GenerationFailure, GenerationRequest, Sampling

COMPLETE, IS_LOADED, RELEASE_CACHES, FIGURES, CANCEL = "complete", "is_loaded", "release_caches", "figures", "cancel"
MOST_BYTES = 64 << 20  # of a message; a chat or an answer of a million tokens is shorter
_LENGTH = struct.Struct("!I")
_OF_THE_LOOP = ("loop", "future")

Message = dict[str, Any]


class TooLong(Exception):
    """A message exceeds MOST_BYTES. The message is one line."""

    def __init__(self, length: int) -> None:
        super().__init__(f"expected at most {MOST_BYTES:,} bytes, got {length:,}")


def encode(message: Mapping[str, Any]) -> bytes:
    """The bytes of a message, as sent. Raises TooLong."""
    text = json.dumps(message).encode()
    if len(text) > MOST_BYTES:
        raise TooLong(len(text))
    return _LENGTH.pack(len(text)) + text


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """The next message; None when the other side has closed. Raises TooLong, ValueError and OSError."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > MOST_BYTES:
            raise TooLong(length)
        text = await reader.readexactly(length)
    except asyncio.IncompleteReadError:  # the other side has closed in the middle of a message
        return None
    message = json.loads(text)
    if not isinstance(message, dict):
        raise ValueError(f"expected an object, got {type(message).__name__}")
    return message


def checkpoint_arguments(checkpoint: Checkpoint) -> Message:
    """The arguments that identify a checkpoint."""
    return {**checkpoint._asdict(), "folder": str(checkpoint.folder)}


def read_checkpoint(raw: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint from `checkpoint_arguments`."""
    return Checkpoint(**{**raw, "folder": Path(raw["folder"])})


def complete_arguments(checkpoint: Checkpoint, request: GenerationRequest, most: int) -> Message:
    """The arguments of a request to a checkpoint, answered together with up to `most` in all."""
    names = [each.name for each in fields(request) if each.init and each.name not in _OF_THE_LOOP]
    asked = {name: getattr(request, name) for name in names}
    return {"checkpoint": checkpoint_arguments(checkpoint), "request": asked, "most": most}


def read_request(raw: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> GenerationRequest:
    """The request from `complete_arguments`, awaited on a loop of this process."""
    asked = {**raw, "sampling": Sampling(*raw["sampling"])}
    return GenerationRequest(**asked, loop=loop, future=loop.create_future())


def result_value(result: Completion | GenerationFailure) -> Message:
    """A result as the value of an answer."""
    if isinstance(result, GenerationFailure):
        return {"failure": result._asdict()}
    return {"completion": {each.name: getattr(result, each.name) for each in fields(result)}}


def read_result(value: Mapping[str, Any]) -> Completion | GenerationFailure:
    """The result from `result_value`."""
    return GenerationFailure(**value["failure"]) if "failure" in value else Completion(**value["completion"])
