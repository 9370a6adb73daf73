"""How long a round waits for a model that gives no answer."""

import asyncio
import random
import time

import pytest

from app import training_part
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
