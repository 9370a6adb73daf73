"""How long a round waits for a model that gives no answer."""

import asyncio
import random
import time

import pytest

from app import training_part
from app.core.failures import BUSY, DENIED, REFUSED, UNSUITED
from app.matches.selfplay import OutageTimer, RoundBlocked
from app.players.base import Generation, PlayerFailed

FAILED = PlayerFailed("torch is not there yet", Generation([], None, "", {}, None, None, 0.0, 0))


def test_time_for_which_the_training_part_was_to_come_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutageTimer, "FIRST", 0.0)
    timer, seconds = OutageTimer(0.05, random.Random(1)), 0.1
    for is_coming in (True, True, False):  # a call that began before the end of its installation fails after it
        monkeypatch.setattr(training_part, "is_coming", lambda found=is_coming: found)
        asyncio.run(timer.wait(FAILED, 0))
        time.sleep(seconds)
    with pytest.raises(RoundBlocked, match="no answer"):
        asyncio.run(timer.wait(FAILED, 0))


def test_options_that_do_not_suit_a_model_stop_it_at_once_or_where_one_call_in_twenty_fails() -> None:
    unsuited = PlayerFailed("no room", FAILED.generation, UNSUITED)
    assert OutageTimer(1, random.Random(1)).blocks(unsuited)
    timer = OutageTimer(1, random.Random(1))
    for _answer in range(40):
        timer.answered()
    assert [timer.blocks(unsuited) for _call in range(3)] == [False, False, True]
    for kind, blocks in ((DENIED, True), (REFUSED, False), (BUSY, False)):
        assert timer.blocks(PlayerFailed("why", FAILED.generation, kind)) is blocks
