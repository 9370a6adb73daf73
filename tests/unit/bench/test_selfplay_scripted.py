"""The benchmark of scripted self-play measures ways that play the very same matches."""

import pytest

from app.games import GAMES
from bench import selfplay_scripted


@pytest.mark.parametrize("game", sorted(GAMES))
def test_every_way_logs_the_same_match(game: str) -> None:
    for seed in range(20):
        first, *others = (play(game, seed) for play in selfplay_scripted.WAYS.values())
        assert all(log == first for log in others)


def test_what_was_measured_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfplay_scripted, "WARM_UP", 2)
    monkeypatch.setattr(
        selfplay_scripted, "freeze_garbage_collector", lambda: None
    )  # which the tests after this one need
    found = selfplay_scripted.measure("negotiation", 3)
    assert found["same_logs"]
    assert found["moves_a_match"] > 2
    stored = {"per_second": 300, "wall_per_second": 290, "whole": False, "rss_mib": {3: 100}}
    all_found = {"game": "negotiation", "curve": True, "yardstick_ms": [1, 1], "committed": stored, **found}
    shown = selfplay_scripted.table(all_found)
    assert "in memory / plain loop:" in shown
    assert "all committed: NO" in shown
    assert "after       3 matches:    100 MiB" in shown
