"""Golden logs replay for ever, to the same outcome and the same views, whatever the rules learn later."""

import json
from typing import Any

import pytest

from app.games.base import Outcome
from app.matches import engine
from app.matches.events import from_json, to_json
from tests.golden.snapshots import SNAPSHOTS, final_views, logs

LOGS = logs()
VIEWS = json.loads(SNAPSHOTS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", LOGS)
def test_a_golden_log_replays_to_what_it_was(name: str) -> None:
    log = LOGS[name]
    match = engine.replay(from_json(raw) for raw in log)
    assert json.loads(json.dumps([to_json(from_json(raw)) for raw in log])) == log
    assert json.loads(json.dumps(final_views(log))) == VIEWS[name]
    assert match.ended is not None
    if match.stopped is None:
        again = match.game.outcome(match.state)
        ended = match.ended
        assert again == Outcome(ended.reason, ended.winner, ended.utilities, ended.facts)


def test_the_golden_logs_cover_every_way_to_end() -> None:
    reasons: dict[str, set[Any]] = {"negotiation": set(), "taboo": set()}
    for name, log in LOGS.items():
        reasons[name.partition("/")[0]].add(log[-1]["reason"])
    assert reasons["negotiation"] == {"deal", "no deal", "move limit", "aborted", "resigned"}
    assert reasons["taboo"] == {"attacker wins", "defender wins", "attacker breaks the rules", "tied game"}


def test_every_golden_log_has_its_snapshot() -> None:
    assert set(VIEWS) == set(LOGS)
