"""The event loop of commands: it ends without leaving calls of models or their connections behind."""

import asyncio
import gc
import logging
import warnings
from pathlib import Path

import pytest

from app.core.config import Settings
from app.jobs.event_loop import running_loop
from app.matches.turns import WorkerContext
from app.players import make_player
from app.players.base import Generation, PlayerSpec
from tests.stub_openai import Reply, StubServer

CHAT = [{"role": "user", "content": "Are you there?"}]


def test_a_loop_that_ends_amid_calls_leaves_none_unasked_and_no_connection_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    gc.collect()  # what tests before left unclosed is not this one's
    with StubServer() as stub, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        stub.script("quick", "Yes.")
        stub.script("slow", Reply("Yes.", delay=60))
        options = {"base_url": stub.url, "key_env": "", "in_flight": 2}
        quick, slow = (
            make_player(PlayerSpec("api", name, {"model": name, **options}), tmp_path) for name in ("quick", "slow")
        )
        with running_loop() as loop:
            context = WorkerContext(
                None,
                Settings(PARLOR_HOME=tmp_path),
                "a test",
                loop=loop,
                notify=lambda _match, _typing: None,  # type: ignore[arg-type]
            )
            assert context.call(lambda: quick.complete(CHAT)).result().text == "Yes."  # type: ignore[union-attr]
            waiting = [context.call(lambda: slow.complete(CHAT)) for _ in range(5)]  # type: ignore[union-attr]
        assert all(each.cancelled() for each in waiting)
        gc.collect()
    assert [str(each.message) for each in warned] == []
    assert caplog.messages == []


def test_what_is_asked_of_a_loop_that_never_comes_to_it_was_not_asked_in_vain(tmp_path: Path) -> None:
    async def answer() -> Generation:
        raise AssertionError

    loop = asyncio.new_event_loop()
    context = WorkerContext(
        None,
        Settings(PARLOR_HOME=tmp_path),
        "a test",
        loop=loop,
        notify=lambda _match, _typing: None,  # type: ignore[arg-type]
    )
    asked: list[None] = []

    def ask() -> object:
        asked.append(None)
        return answer()

    async def cancel_others() -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    waiting = context.call(ask)  # type: ignore[arg-type]
    loop.run_until_complete(cancel_others())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert asked == []
    assert waiting.cancelled()
