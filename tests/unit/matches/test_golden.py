"""Golden logs replay for ever, to the same outcome and the same views, whatever the rules learn later."""

import json
from typing import Any

import pytest

from app.games import find_game
from app.games.base import Event, Outcome
from app.matches import engine
from app.matches.events import LogEvent, Violated, from_json, to_json
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


def todays(log: list[LogEvent]) -> list[LogEvent]:
    """The events that the moves of a log would add to it today."""
    made, match = [log[0]], engine.replay(log[:1])
    for event in log[1:]:
        if isinstance(event, Event | Violated):
            made += engine.step(match, event.seat, event.text, by_model=True)
        match = engine.apply(match, event)
    return made


@pytest.mark.parametrize("name", LOGS)
def test_the_moves_of_a_golden_log_of_this_version_would_be_judged_today_as_they_were(name: str) -> None:
    log = [from_json(raw) for raw in LOGS[name]]
    current = log[0].game_version == find_game(log[0].game).version
    same = verdicts(todays(log)) == verdicts(log)
    assert same or not current, "what a text is judged to be has changed: raise the version of the game"


def verdicts(log: list[LogEvent]) -> list[Event | str]:
    """What each text was found to be: an accepted move with the judge's word, or the code of its refusal."""
    return [e.code if isinstance(e, Violated) else e for e in log if isinstance(e, Event | Violated)]


def test_a_log_of_an_earlier_version_keeps_the_verdict_that_today_is_another() -> None:
    log = [from_json(raw) for raw in LOGS["taboo/version-1-released-plural"]]
    assert engine.replay(log).game.outcome(engine.replay(log).state).reason == "attacker wins"
    assert todays(log)[-1].reason == "tied game"


def test_the_golden_logs_cover_every_way_to_end() -> None:
    reasons: dict[str, set[Any]] = {"negotiation": set(), "taboo": set()}
    for name, log in LOGS.items():
        reasons[name.partition("/")[0]].add(log[-1]["reason"])
    assert reasons["negotiation"] == {"deal", "no deal", "move limit", "aborted", "resigned"}
    assert reasons["taboo"] == {"attacker wins", "defender wins", "attacker breaks the rules", "tied game"}


def test_every_golden_log_has_its_snapshot() -> None:
    assert set(VIEWS) == set(LOGS)
