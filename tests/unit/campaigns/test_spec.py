"""What a campaign is made of: its fields as they are typed, its evaluations, and what it keeps aside."""

import json
import random
from typing import Any

import pytest

from app.campaigns.lifecycle import model_name
from app.campaigns.material import HELD_OUT, is_held_out, parted
from app.campaigns.partners import PlayPartner
from app.campaigns.presets import PRESETS, with_preset
from app.campaigns.spec import CampaignSpec, read_spec, spec_of
from app.core.errors import Invalid, NotFound
from app.games import GAMES
from app.games.base import Game
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
        (
            "method",
            "stable-alignment",
            "method: expected sft or offline-po or sft-kl, got stable-alignment, which learns",
        ),
        ("start_method", "tiny", "start_method: expected sft or "),
        ("data_of", "some", "data_of: expected last or all"),
        ("decay", 0.9, "decay: expected it with rewards"),
        ("play_with", ["scripted=2"], "play_with: expected a share above 0 and below 1, got '2'"),
        ("play_with", ["a=0.5", "b=0.5"], "play_with: expected shares below 1 in all"),
        (
            "play_with",
            ["a=0.7", "b=0.1", "c=0.1", "d=0.1"],  # whose sum in binary is less than 1
            "play_with: expected shares below 1 in all, as some matches are the model’s with itself, got 1",
        ),
        ("play_with", ["a", "a=0.1"], "play_with: expected models such as scripted=0.25, each once"),
        ("partner", list("abcde"), "partner: expected at most 4 of them, got 5"),
        ("start_data", "mine", "start_data: expected a whole number"),
        ("config", {"counts": [1, 2, 3], "values": [[3, 2, 1], [1, 3, 1]]}, "config: expected what all matches share"),
    ],
)
def test_a_field_that_cannot_be_is_named(field: str, value: object, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_spec({**TYPED, field: value}, seed=0)
    assert refused.value.message.startswith(says)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"method": "offline-po", "data_of": "all"},
            "data_of: expected last with offline-po, whose rows",
        ),
        ({"method": "offline-po", "rewards": "none"}, "rewards: expected those that offline-po learns from"),
        ({"teacher": "scripted", "start_data": 3}, "teacher: expected a teacher or a dataset to start from, got both"),
        ({"teacher": "scripted", "start_method": "offline-po"}, "start_method: expected sft or sft-kl, got offline-po"),
    ],
)
def test_fields_that_do_not_go_together_are_refused_before_anything_is_played(
    fields: dict[str, object], says: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read_spec({**TYPED, **fields}, seed=0)
    assert refused.value.message.startswith(says)


def test_a_method_that_learns_from_rewards_has_them_made_and_keeps_all_rows() -> None:
    spec = read_spec({**TYPED, "method": "offline-po", "decay": "0.5", "role_weights": False}, seed=0)
    assert (spec.rewards, spec.filter, spec.decay, spec.role_weights) == ("spag", "all", 0.5, False)
    assert spec.training == {}  # what small models need by imitation would be far too much
    assert read_spec({**TYPED, "method": "offline-po", "filter": "nonzero"}, seed=0).filter == "nonzero"


def test_every_model_may_be_evaluated_against_several_opponents() -> None:
    spec = read_spec({**TYPED, "partner": ["scripted", "tiny", "scripted"], "evaluation_temperature": "none"}, seed=0)
    assert [each.label for each in spec.further] == ["against scripted", "against tiny"]
    assert spec.to_json()["partner"] == "scripted"


def test_partners_in_play_share_the_matches_with_the_model_itself() -> None:
    spec = read_spec({**TYPED, "matches": 100, "play_with": ["scripted=0.25", "tiny"]}, seed=0)
    assert spec.play_with == (PlayPartner("scripted", 0.25), PlayPartner("tiny", 0.375))
    assert spec.matches_against == {"scripted": 24, "tiny": 36}  # as many from either seat


def test_a_start_is_one_iteration_more() -> None:
    spec = read_spec({**TYPED, "iterations": 3, "teacher": "scripted"}, seed=0)
    assert (spec.total, spec.is_start(1), spec.is_start(2)) == (4, True, False)
    assert read_spec({**TYPED, "iterations": 3}, seed=0).total == 3


def test_rounds_are_sampled_as_the_games_paper_did_unless_it_is_said() -> None:
    taboo = {"game": "taboo", "base": "small"}
    assert read_spec(taboo, seed=0).sampling == {"temperature": 1.2, "top_k": 50}
    assert read_spec({**taboo, "sampling": {"top_k": "none", "temperature": 0.5}}, seed=0).sampling == {
        "temperature": 0.5
    }
    assert read_spec(TYPED, seed=0).sampling == {}


@pytest.mark.parametrize("name", PRESETS)
def test_each_value_of_a_preset_can_be_given_otherwise(name: str) -> None:
    taboo = {"game": "taboo", "base": "small"}
    plain = read_spec(with_preset(name, taboo), seed=0)
    own = {"iterations": 2, "training": {"epochs": 7}, "sampling": {"temperature": 0.3}, "filter": "nonzero"}
    changed = read_spec(with_preset(name, {**taboo, **own}), seed=0)
    assert (changed.iterations, changed.filter) == (2, "nonzero")
    assert changed.training == {**plain.training, "epochs": 7}
    assert changed.sampling == {**plain.sampling, "temperature": 0.3}
    assert changed.method == plain.method
    other = read_spec(with_preset(name, {**taboo, "method": "sft-kl"}), seed=0)
    assert other.training["learning_rate"] == 1e-3  # what was published for another method says nothing of this one


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(Invalid, match="preset: expected lm-selfplay or spag, got 'mine'"):
        with_preset("mine", TYPED)


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
    spec = read_spec({**TYPED, "training": {"max_steps": 4}, "play_with": ["tiny=0.5"], "start_data": 3}, seed=5)
    stored = json.loads(json.dumps(spec.to_json()))
    assert spec_of(stored) == spec
    before = {name: stored[name] for name in ("game", "base", "iterations", "matches", "evaluation", "seed")}
    assert spec_of({**before, "partner": "scripted"}).partners == ("scripted",)
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


@pytest.mark.parametrize("game", [game for game in GAMES.values() if game.material])
def test_the_piece_of_a_match_is_found_in_its_config(game: Game[Any]) -> None:
    kind = game.material
    assert kind is not None
    piece = kind.draw_all(random.Random(1))[0]
    config = game.initial(game.config(kind.config_of(piece)), random.Random(2)).config.to_json()
    assert kind.piece_of(config) == piece
    assert kind.piece_of({}) is None


def test_models_are_called_after_their_campaign() -> None:
    assert [model_name("loop", number) for number in (1, 2)] == ["loop-1", "loop-2"]
