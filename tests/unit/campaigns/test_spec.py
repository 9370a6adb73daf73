"""What a campaign is made of: its fields as they are typed, its evaluations, and what it keeps aside."""

import json
import random
from typing import Any

import pytest

from app.campaigns.lifecycle import START_MATCHES, model_name, spec_of
from app.campaigns.material import split_material
from app.campaigns.presets import PRESETS
from app.campaigns.spec import CampaignSpec
from app.core.errors import Invalid
from app.games import GAMES
from app.games.base import Game
from app.games.taboo.words import TargetWords
from app.rounds.held_out import HELD_OUT, is_held_out
from app.rounds.lifecycle import Material

TYPED = {"game": "negotiation", "base": "small"}
OF_BEFORE = {  # as 0.2 wrote it
    **TYPED, "iterations": 5, "matches": 100, "evaluation": 500, "seed": 5, "filter": "above_avg", "method": "sft",
    "start": "previous", "config": {}, "training": {"max_steps": 4}, "sampling": {"temperature": 0.5},
    "evaluation_temperature": None, "partners": ["scripted", "tiny"], "partner": "scripted", "data_of": "last",
    "rewards": "none", "decay": 0.8, "role_weights": True, "positive_only": False,
    "play_with": [["scripted", 0.25], ["tiny", 0.375]], "start_data": None, "teacher": None, "start_method": "sft",
    "start_training": {"epochs": 12, "learning_rate": 0.001}, "sft_data": None, "source": "generated contexts",
    "start_matches": None,
}  # fmt: skip


def read(**fields: Any) -> CampaignSpec:
    return CampaignSpec.read({**TYPED, "seed": 0, **fields})


def test_what_is_left_out_or_empty_has_its_default() -> None:
    spec = read(matches="", seed=None)
    assert (spec.game, spec.base, spec.matches) == ("negotiation", "small", 500)
    assert spec.seed != read(seed=None).seed  # drawn
    assert [each.label for each in spec.further] == ["greedy", "against scripted"]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("iterations", "0", "iterations: expected a whole number from 1"),
        ("matches", "1", "matches: expected all or a whole number from 2"),
        ("filter", "best", "filter: expected "),
        ("start", "newest", "start: expected "),
        ("evaluation_temperature", "warm", "evaluation_temperature: expected none or a number from 0 to 2, got"),
        (
            "method",
            "stable-alignment",
            "method: expected sft or offline-po or sft-kl, got stable-alignment, which learns",
        ),
        ("start_method", "tiny", "start_method: expected sft or "),
        ("data_of", "some", "data_of: expected last or all"),
        ("decay", 0.9, "decay: expected it with rewards"),
        ("play_with", {"scripted": "2"}, "play_with: expected equal or a number above 0 and below 1, got '2'"),
        ("play_with", {"a": 0.5, "b": 0.5}, "play_with: expected shares that sum to less than 1"),
        (
            "play_with",
            {"a": 0.7, "b": 0.1, "c": 0.1, "d": 0.1},  # whose sum in binary is less than 1
            "play_with: expected shares that sum to less than 1, as some matches are self-play, got 1",
        ),
        ("partners", list("abcde"), "partners: expected 0 to 4 models, got 5"),
        ("start_data", ["mine"], "start_data: expected text"),
        ("config", {"counts": [1, 2, 3], "values": [[3, 2, 1], [1, 3, 1]]}, "config: expected what all matches share"),
    ],
)
def test_a_field_that_cannot_be_is_named(field: str, value: object, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(**{field: value})
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
        (
            {"start_training": {"epochs": 2}},
            "start_training: expected a teacher or a dataset to start from, got neither",
        ),
        ({"start_method": "sft-kl"}, "start_method: expected a teacher or a dataset to start from, got neither"),
        ({"teacher": "scripted", "start_method": "offline-po"}, "start_method: expected sft or sft-kl, got offline-po"),
    ],
)
def test_fields_that_do_not_go_together_are_refused_before_anything_is_played(
    fields: dict[str, object], says: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read(**fields)
    assert refused.value.message.startswith(says)


def test_a_method_that_learns_from_rewards_has_them_made_and_keeps_all_rows() -> None:
    spec = read(method="offline-po", decay="0.5", role_weights=False)
    assert (spec.given_rewards, spec.kept, spec.given_decay, spec.role_weights) == ("spag", "all", 0.5, False)
    assert read(method="offline-po").given_decay == 0.8
    assert spec.training == {}  # what small models need by imitation would be far too much
    assert read(method="offline-po", filter="nonzero").kept == "nonzero"
    assert (read().given_rewards, read().kept) == ("none", "above_avg")


def test_every_model_may_be_evaluated_against_several_opponents() -> None:
    spec = read(partners=["scripted", "tiny", "scripted"], evaluation_temperature="none")
    assert [each.label for each in spec.further] == ["against scripted", "against tiny"]


def test_partners_in_play_share_the_matches_with_the_model_itself() -> None:
    spec = read(matches=100, play_with={"scripted": "0.25", "tiny": "equal"})
    assert spec.shares == {"scripted": 0.25, "tiny": 0.375}
    assert spec.matches_against == {"scripted": 24, "tiny": 36}  # as many from either seat


def test_a_start_is_one_iteration_more() -> None:
    spec = read(iterations=3, teacher="scripted")
    assert (spec.total, spec.is_start(1), spec.is_start(2)) == (4, True, False)
    assert spec.start_training == {"epochs": 12, "learning_rate": 1e-3}
    assert read(iterations=3, teacher="none", start_data="none").total == 3


def test_rounds_are_sampled_as_the_games_paper_did_unless_it_is_said() -> None:
    assert read(game="taboo").sampling.options() == {"temperature": 1.2, "top_k": 50}
    other = read(game="taboo", sampling={"top_k": "none", "temperature": 0.5})
    assert other.sampling.options() == {"temperature": 0.5}
    assert read().sampling.options() == {}
    for spec in (other, read()):
        assert CampaignSpec.of_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_moves_are_read_leniently_but_in_campaigns_of_before_and_in_those_that_reproduce_a_paper() -> None:
    spec = read()
    assert spec.lenient
    before = {name: value for name, value in spec.to_json().items() if name != "lenient"}
    assert not CampaignSpec.of_json({**before, "version": 2}).lenient
    assert not any(read(game="taboo", preset=name).lenient for name in PRESETS)
    assert read(preset="lm-selfplay", lenient=True).lenient


@pytest.mark.parametrize("name", PRESETS)
def test_each_value_of_a_preset_can_be_given_otherwise(name: str) -> None:
    taboo = {"game": "taboo", "preset": name, "teacher": "scripted"}
    plain = read(**taboo)
    own = {"iterations": 2, "training": {"epochs": 7}, "sampling": {"temperature": 0.3}, "filter": "nonzero"}
    changed = read(**taboo, **own)
    assert (changed.iterations, changed.filter) == (2, "nonzero")
    assert changed.training == {**plain.training, "epochs": 7}
    assert changed.sampling.options() == {**plain.sampling.options(), "temperature": 0.3}
    assert changed.method == plain.method
    other = read(**taboo, method="sft-kl")
    assert other.training["learning_rate"] == 1e-3  # what was published for another method says nothing of this one


def test_a_preset_needs_nothing_that_comes_before_the_rounds() -> None:
    assert read(game="taboo", preset="spag", teacher="scripted").start_method == "sft-kl"
    assert read(game="taboo", preset="spag").start_method == "sft"


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(Invalid, match="preset: expected lm-selfplay or spag, got 'mine'"):
        read(preset="mine")


def test_a_campaign_without_a_base_says_how_to_find_one() -> None:
    with pytest.raises(Invalid, match="flask model list"):
        CampaignSpec.read({"game": "taboo"})


def test_an_evaluation_in_the_manner_of_the_rounds_is_not_made_twice() -> None:
    spec = read(sampling={"temperature": 0.5}, evaluation_temperature="0.5")
    assert [each.label for each in spec.further] == ["against scripted"]
    assert spec.as_played == ("", {"temperature": 0.5}, None)


def test_further_evaluations_can_be_left_out() -> None:
    for partners in (["none"], []):
        assert list(read(evaluation_temperature="none", partners=partners).further) == []


def test_another_temperature_keeps_what_else_the_rounds_are_sampled_with() -> None:
    sampling = {"temperature": 1.0, "max_tokens": 60}
    spec = read(sampling=sampling, evaluation_temperature=0.3, partners=["none"])
    assert list(spec.further) == [("temperature 0.3", {"temperature": 0.3, "max_tokens": 60}, None)]


def test_a_stored_spec_comes_back_with_what_it_knew_in_its_time() -> None:
    spec = read(training={"max_steps": 4}, play_with={"tiny": 0.5}, start_data="3")
    stored = json.loads(json.dumps({**spec.to_json(), START_MATCHES: {"number": 3, "matches": 2, "held_out": 1}}))
    assert spec_of(stored) == spec


def test_a_spec_of_before_is_read_as_it_was_meant() -> None:
    spec = spec_of(OF_BEFORE)
    assert (spec.training["max_steps"], spec.given_rewards, spec.kept) == (4, "none", "above_avg")
    assert (spec.matches_against, spec.has_start) == ({"scripted": 24, "tiny": 36}, False)
    assert list(spec.further) == [
        ("against scripted", {"temperature": 0.5}, "scripted"),
        ("against tiny", {"temperature": 0.5}, "tiny"),
    ]
    assert spec.material == "generated contexts"
    assert spec_of(spec.to_json()) == spec
    taboo = spec_of({**OF_BEFORE, "game": "taboo", "sampling": {}})
    assert taboo.sampling.options() == {}  # and not what the game's paper did
    rewarded = spec_of({**OF_BEFORE, "method": "offline-po", "rewards": "spag", "decay": 0.5, "positive_only": True})
    assert (rewarded.given_rewards, rewarded.given_decay, rewarded.positive_only) == ("spag", 0.5, True)
    taught = spec_of({**OF_BEFORE, "teacher": "tiny"})
    assert (taught.total, taught.start_training) == (6, {"epochs": 12, "learning_rate": 0.001})
    oldest = {name: OF_BEFORE[name] for name in ("game", "base", "iterations", "matches", "evaluation", "seed")}
    assert spec_of({**oldest, "partner": "scripted", "play": "a field of before"}).partners == ("scripted",)
    assert list(spec_of(oldest).further) == []


def test_what_is_held_out_is_never_among_what_is_played() -> None:
    words = Material("a test", [f"word{number}" for number in range(200)])
    play, held = split_material("taboo", words, evaluation=50, seed=1)
    assert set(play.items).isdisjoint(held.items)
    assert set(play.items) | set(held.items) == set(words.items)
    assert all(is_held_out(TargetWords(), word) for word in held.items)
    assert (play.source, held.source, len(held.items)) == ("a test", HELD_OUT, 50)


def test_another_seed_evaluates_on_the_same_pieces_in_another_order() -> None:
    words = Material("a test", [f"word{number}" for number in range(400)])
    orders = [split_material("taboo", words, evaluation=20, seed=seed)[1].items for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_a_list_too_short_to_hold_anything_out_is_refused() -> None:
    with pytest.raises(Invalid, match="expected a list of which a tenth can be held out, got 1 items"):
        split_material("taboo", Material("a test", ["lemon"]), evaluation=2, seed=1)


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
