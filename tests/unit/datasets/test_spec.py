"""What a dataset is to be cut from: read from fields and from JSON, of earlier releases, too, and written again."""

from typing import Any

import pytest

from app.core.errors import Invalid
from app.datasets.spec import read_spec
from app.matches.filter import MatchFilter

OLD = {
    "rounds": [3], "game": "taboo", "filter": "all", "rewards": "none", "source": "people", "model": "gpt",
    "reason": "attacker wins", "since": "2026-01-01", "until": None, "style": "full",
}  # fmt: skip


def test_a_spec_of_an_earlier_release_is_read_with_its_model_among_the_models() -> None:
    spec = read_spec(OLD)
    assert (spec.speakers, spec.matches.source, spec.models) == ("people", None, ("gpt",))
    written = {name: value for name, value in OLD.items() if name != "model"} | {"models": ["gpt"]}
    assert spec.to_json() == written
    assert read_spec(written) == spec


@pytest.mark.parametrize("nested", [False, True])
def test_every_condition_of_the_filter_of_matches_can_be_given(nested: bool) -> None:
    choice = {
        "player": "person",
        "source": "live",
        "study": "pilot",
        "arm": "a",
        "consent": "given",
        "role": "attacker",
    }
    spec = read_spec({"filter": "all", **({"matches": choice} if nested else choice)})
    assert spec.matches == MatchFilter(**choice)
    written = spec.to_json()
    assert (written["source"], written["matches"]) == ("both", choice)
    assert read_spec(written) == spec


def test_who_made_the_moves_and_where_they_were_made_can_both_be_given() -> None:
    spec = read_spec({"filter": "all", "source": "live", "speakers": "models"})
    assert (spec.speakers, spec.matches.source, spec.outside_rounds) == ("models", "live", False)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "rounds: expected the number of a round or a campaign, or a game"),
        ({"player": "person"}, "rounds: expected the number of a round or a campaign, or a game"),
        ({"game": "taboo", "status": "playing"}, "status: expected over, as only finished matches give rows"),
        ({"game": "taboo", "source": "moon"}, "source: expected live"),
        ({"game": "taboo", "speakers": "parrots"}, "speakers: expected both"),
        ({"game": "taboo", "consent": "perhaps"}, "consent: expected given"),
    ],
)
def test_what_no_dataset_can_be_cut_by_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        read_spec({"filter": "all", **given})
