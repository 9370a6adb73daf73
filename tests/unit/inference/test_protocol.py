"""What travels between workers and the process of local models arrives as it was sent."""

import asyncio
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from app.core.failures import BUSY
from app.inference import protocol
from app.inference.requests import STOP, Checkpoint, Completion, GenerationFailure, GenerationRequest, Sampling

CHAT = [{"role": "user", "content": "hats, bälls and \ud800"}]  # half of a character, as a model may have written it
CHECKPOINT = Checkpoint(Path("/somewhere else/ü"), "ab" * 32, "cpu", "auto")


def arrived(data: bytes) -> Any:
    """What is read of these bytes, after which the connection is closed."""

    async def read() -> Any:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await protocol.read_message(reader)

    return asyncio.run(read())


def test_all_that_is_asked_of_a_model_arrives() -> None:
    async def travel() -> tuple[GenerationRequest, GenerationRequest, Any]:
        loop = asyncio.get_running_loop()
        sent = GenerationRequest(
            CHAT, Sampling(0.1, 7, None, 3), 25, "a seed", loop, loop.create_future(), 2, {"enable_thinking": False},
            room=40, room_if_needed=True,
        )  # fmt: skip
        message = await asyncio.to_thread(arrived, protocol.encode(protocol.complete_arguments(CHECKPOINT, sent, 128)))
        return sent, protocol.read_request(message["request"], loop), message

    sent, read, message = asyncio.run(travel())
    assert (protocol.read_checkpoint(message["checkpoint"]), message["most"]) == (CHECKPOINT, 128)
    asked = [each.name for each in fields(sent) if each.init and each.name not in ("loop", "future")]
    assert len(asked) >= 8
    assert [getattr(read, name) for name in asked] == [getattr(sent, name) for name in asked]
    assert isinstance(read.sampling, Sampling)


@pytest.mark.parametrize(
    "result",
    [
        Completion(
            "it", [3, 2], [-0.1, float("-inf")], 9, "cd" * 32, STOP, 30, "cpu", "float32", None, 0.25, "so", 1, 5
        ),
        GenerationFailure("out of memory", BUSY),
    ],
    ids=["an answer", "none"],
)
def test_a_result_arrives(result: Completion | GenerationFailure) -> None:
    assert protocol.read_result(arrived(protocol.encode(protocol.result_value(result)))) == result


def test_a_message_that_is_cut_off_is_none_and_one_that_is_too_long_is_refused() -> None:
    whole = protocol.encode({"number": 1})
    assert arrived(whole) == {"number": 1}
    assert [arrived(whole[:length]) for length in (0, 2, len(whole) - 1)] == [None, None, None]
    with pytest.raises(protocol.TooLong, match=r"expected at most 67,108,864 bytes, got 4,294,967,295"):
        arrived(b"\xff" * 9)
    with pytest.raises(protocol.TooLong):
        protocol.encode({"text": "x" * protocol.MOST_BYTES})
