"""Campaigns of benches, with a stand-in for the `flask` command: what counts as over, and what fails."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import campaign_homes
from bench.campaign_homes import run_campaign

KEEPS_NOTHING = "expected to keep at least one transcript"


def stopped_with(error: str, commands: list[Sequence[str]]) -> object:
    """A `flask` whose campaign stops with this error."""
    campaign = {"name": "loop", "campaign_id": 4, "status": "failed", "error": error}

    def flask(_home: Path, *arguments: str) -> str:
        commands.append(arguments)
        if arguments[1] == "resume":
            raise SystemExit(1)
        return json.dumps([campaign] if arguments[1] == "list" else campaign)

    return flask


def test_a_campaign_that_may_stop_is_over_when_it_stops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[Sequence[str]] = []
    monkeypatch.setattr(campaign_homes, "flask", stopped_with(f"round 9: {KEEPS_NOTHING}, got none", commands))
    campaign, begun = run_campaign(tmp_path, "loop", may_stop=KEEPS_NOTHING)
    assert (campaign["status"], begun) == ("failed", True)
    assert [each[1] for each in commands] == ["list", "resume", "list", "show"]


@pytest.mark.parametrize(("error", "may_stop"), [("no disk", KEEPS_NOTHING), (KEEPS_NOTHING, None)])
def test_any_other_campaign_that_stops_has_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: str, may_stop: str | None
) -> None:
    monkeypatch.setattr(campaign_homes, "flask", stopped_with(error, []))
    with pytest.raises(SystemExit):
        run_campaign(tmp_path, "loop", may_stop=may_stop)
