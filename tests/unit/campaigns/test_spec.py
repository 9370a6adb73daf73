"""What a campaign is made of: its fields as they are typed, its evaluations, and what it keeps aside."""

import json

import pytest

from app.campaigns.lifecycle import model_name
from app.campaigns.material import HELD_OUT, is_held_out, parted
from app.campaigns.spec import CampaignSpec, read_spec, spec_of
from app.errors import Invalid, NotFound
from app.games.taboo.words import TargetWords
from app.rounds.lifecycle import Material

TYPED = {"game": "negotiation", "base": "small"}


def test_what_is_left_out_or_empty_has_its_default() -> None:
    spec = read_spec({**TYPED, "matches": "", "seed": None}, seed=11)
    assert (spec.game, spec.base, spec.matches, spec.seed) == ("negotiation", "small", 500, 11)
    assert [each.label for each in spec.further] == ["greedy", "against scripted"]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("iterations", "0", "rounds: expected a whole number from 1"),
        ("matches", "1", "matches: expected a whole number from 2"),
        ("filter", "best", "filter: expected "),
        ("start", "newest", "start: expected "),
        ("evaluation_temperature", "warm", "evaluation_temperature: expected a number from 0 (greedy) to 2, or none"),
        ("config", {"counts": [1, 2, 3], "values": [[3, 2, 1], [1, 3, 1]]}, "config: expected what all matches share"),
    ],
)
def test_a_field_that_cannot_be_is_named(field: str, value: object, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_spec({**TYPED, field: value}, seed=0)
    assert refused.value.message.startswith(says)


def test_a_campaign_without_a_base_says_how_to_find_one() -> None:
    with pytest.raises(NotFound, match="flask model list"):
        read_spec({"game": "taboo"}, seed=0)


def test_an_evaluation_in_the_manner_of_the_rounds_is_not_made_twice() -> None:
    spec = read_spec({**TYPED, "sampling": {"temperature": 0.5}, "evaluation_temperature": "0.5"}, seed=0)
    assert [each.label for each in spec.further] == ["against scripted"]
    assert spec.as_played == ("", {"temperature": 0.5}, None)


@pytest.mark.parametrize("word", ["none", "", None])
def test_further_evaluations_can_be_left_out(word: str | None) -> None:
    spec = read_spec({**TYPED, "evaluation_temperature": word, "partner": word}, seed=0)
    assert list(spec.further) == []


def test_another_temperature_keeps_what_else_the_rounds_are_sampled_with() -> None:
    sampling = {"temperature": 1.0, "max_tokens": 60}
    spec = read_spec({**TYPED, "sampling": sampling, "evaluation_temperature": 0.3, "partner": "none"}, seed=0)
    assert list(spec.further) == [("temperature 0.3", {"temperature": 0.3, "max_tokens": 60}, None)]


def test_a_stored_spec_comes_back_with_what_it_knew_in_its_time() -> None:
    spec = read_spec({**TYPED, "training": {"max_steps": 4}}, seed=5)
    stored = json.loads(json.dumps(spec.to_json()))
    assert spec_of(stored) == spec
    before = {name: stored[name] for name in ("game", "base", "iterations", "matches", "evaluation", "seed")}
    assert spec_of({**before, "play": "a field of before"}) == CampaignSpec("negotiation", "small", 5, 500, 500, 5)


def test_what_is_held_out_is_never_among_what_is_played() -> None:
    words = Material("a test", [f"word{number}" for number in range(200)])
    play, held = parted("taboo", words, evaluation=50, seed=1)
    assert set(play.items).isdisjoint(held.items)
    assert set(play.items) | set(held.items) == set(words.items)
    assert all(is_held_out(TargetWords(), word) for word in held.items)
    assert (play.source, held.source, len(held.items)) == ("a test", HELD_OUT, 50)


def test_another_seed_evaluates_on_the_same_pieces_in_another_order() -> None:
    words = Material("a test", [f"word{number}" for number in range(400)])
    orders = [parted("taboo", words, evaluation=20, seed=seed)[1].items for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_a_list_too_short_to_hold_anything_out_is_refused() -> None:
    with pytest.raises(Invalid, match="expected a list of which a tenth can be held out, got 1 items"):
        parted("taboo", Material("a test", ["lemon"]), evaluation=2, seed=1)


def test_models_are_called_after_their_campaign() -> None:
    assert [model_name("loop", number) for number in (1, 2)] == ["loop-1", "loop-2"]
