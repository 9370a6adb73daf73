"""The options of `flask campaign run`, and the campaign that they ask for."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from app.campaigns.presets import PRESETS, with_preset
from app.campaigns.spec import DATA_OF, EACH_ONCE, METHODS, PARTNER, STARTS, TRAINING, CampaignSpec, read_spec
from app.cli.base import RepeatableOption, is_name, is_pair, read_pairs, read_value
from app.cli.material import material_options, named_material, read_material
from app.core.errors import Invalid, Verbatim, either
from app.datasets.filters import ABOVE_AVG, ALL, FILTERS
from app.datasets.spec import NO_REWARDS, REWARDS, SPAG
from app.games import GAMES
from app.games.rewards import DECAY
from app.matches.lobby import new_seed, read_seed
from app.rounds.lifecycle import Material

_NUMBERS = ("iterations", "matches", "evaluation", "start_data", "sft_data")
_PAIRS = {"config": "config", "training": "train", "start_training": "start_train"}  # fields, by their options
_SAMPLING = ("temperature", "top_k", "max_tokens")
_CALLED = {"iterations": "rounds", "training": "train", "start_training": "start-train"}  # options of fields
_OWN = " ".join(f"{name}={value:g}" for name, value in TRAINING.items())


def _usual(field: str) -> str:
    """What a field of the sampling is where nobody says it, for the help."""
    games = [f"; {game.name}: {game.sampling[field]:g}" for game in GAMES.values() if field in game.sampling]
    return f"[default: the model's own{''.join(games)}]"


def _in_options(fields: Mapping[str, Any]) -> str:
    """The fields of a preset as options, for the help."""
    found = []
    for name, value in fields.items():
        option = f"--{_CALLED.get(name, name).replace('_', '-')}"
        if name in _PAIRS:
            found.append(f"{option} {' '.join(f'{key}={each:g}' for key, each in value.items())}")
        elif name == "sampling":
            found += [f"--{key.replace('_', '-')} {each:g}" for key, each in value.items()]
        else:
            found.append(f"{option} {value}")
    return " ".join(found)


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--game", required=True, metavar="GAME"),
    click.option("--base", required=True, metavar="MODEL", help="The local model to start from."),
    click.option(
        "--preset",
        type=click.Choice(tuple(PRESETS)),
        help="Published settings, each of which another option may change. "
        + " ".join(f"{name} is {_in_options(each.fields)}." for name, each in PRESETS.items()),
    ),
    click.option("--rounds", "iterations", metavar="N", help="How often. [default: 5]"),
    click.option(
        "--matches",
        metavar="N",
        help=f"Matches of each round; {EACH_ONCE}: one for each piece of material. [default: 500]",
    ),
    click.option("--evaluation", metavar="N", help="Held-out matches for each model. [default: 500]"),
    click.option(
        "--evaluation-temperature",
        metavar="T",
        help="Evaluate at this temperature, too; 0 is greedy, none leaves it out. [default: 0]",
    ),
    click.option(
        "--partner",
        cls=RepeatableOption,
        belongs=is_name,
        metavar="MODEL",
        help=f"Evaluate against these models, too, each a fixed opponent; none leaves it out. [default: {PARTNER}]",
    ),
    click.option(
        "--play-with",
        cls=RepeatableOption,
        belongs=is_name,
        metavar="MODEL[=SHARE]",
        help="Play this share of each round's matches with that model, and learn none of its moves."
        " [default share: as much as with itself]",
    ),
    click.option("--filter", type=click.Choice(FILTERS), help=f"[default: {ABOVE_AVG}; {ALL} with rewards]"),
    click.option("--method", metavar="METHOD", help=f"{either(METHODS)}. [default: {METHODS[0]}]"),
    click.option(
        "--rewards",
        type=click.Choice(REWARDS),
        help=f"Of moves. [default: {SPAG} with a method that learns from them, else {NO_REWARDS}]",
    ),
    click.option("--decay", metavar="γ", help=f"A reward is shared among moves by γ. [default: {DECAY}]"),
    click.option("--role-weights/--no-role-weights", default=None, help="Weigh both roles alike. [default: so]"),
    click.option("--positive-only", is_flag=True, default=None, help="Learn no moves with a reward of 0 or less."),
    click.option("--start", type=click.Choice(STARTS), help=f"What a training goes on from. [default: {STARTS[0]}]"),
    click.option(
        "--data-of",
        type=click.Choice(DATA_OF),
        help=f"Of which rounds a training learns the rows. [default: {DATA_OF[0]}]",
    ),
    click.option(
        "--config", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="A setting of the game: objective=coop."
    ),
    click.option(
        "--train",
        cls=RepeatableOption,
        belongs=is_pair,
        metavar="K=V",
        help=f"A field of the training, as of `flask train`. [default: {_OWN}; with rewards, the method's own]",
    ),
    click.option(
        "--start-data",
        metavar="DATASET",
        help="Begin with one iteration more, which learns from the dataset of this number.",
    ),
    click.option(
        "--sft-data",
        metavar="DATASET",
        help="Mix the supervised rows of the dataset of this number into each training; for offline-po.",
    ),
    click.option(
        "--teacher",
        metavar="MODEL",
        help="Begin with one iteration more, which learns from what won in a round of this model with itself.",
    ),
    click.option("--start-method", metavar="METHOD", help=f"How it learns from that. [default: {METHODS[0]}]"),
    click.option(
        "--start-train",
        cls=RepeatableOption,
        belongs=is_pair,
        metavar="K=V",
        help="A field of the training that it begins with.",
    ),
    material_options(", of which a tenth is held out"),
    click.option("--seed", metavar="S", help="Rounds, evaluations and trainings follow from it. [default: drawn]"),
    click.option("--temperature", metavar="T", help=f"0 to 2; none: the model's own. {_usual('temperature')}"),
    click.option("--top-k", metavar="K", help=f"Sample from the K likeliest tokens; none: from all. {_usual('top_k')}"),
    click.option("--max-tokens", metavar="N", help="Most tokens of one move. [default: the game's]"),
)


def campaign_options(command: Any) -> Any:
    """Adds the options that say what a campaign is to do."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_campaign(given: dict[str, Any]) -> tuple[CampaignSpec, Material | None]:
    """The campaign that these options ask for, and its material; None where matches draw their own.

    Raises NotFound for an unknown game, and Invalid for all else that is no campaign.
    """
    game, seed, preset = (given.pop(name) for name in ("game", "seed", "preset"))
    pairs = {field: read_pairs(given.pop(option), f"--{option.replace('_', '-')}") for field, option in _PAIRS.items()}
    items = read_material(game, named_material(game, given), pairs["config"])
    _check_start(given["start_data"] or given["teacher"], given["start_method"], pairs["start_training"])
    sampling = {field: read_value(value) for field in _SAMPLING if (value := given.pop(field)) is not None}
    fields = {
        name: read_value(value) if name in _NUMBERS and value is not None else value
        for name, value in given.items()
        if value != ()
    }
    wanted = with_preset(preset, {**fields, **pairs, "game": game, "sampling": sampling})
    return read_spec(wanted, seed=new_seed() if seed is None else read_seed(seed, "--seed")), items


def _check_start(source: str | None, method: str | None, training: Mapping[str, Any]) -> None:
    """Raises Invalid for options of a start that there is not."""
    if source is None and (method is not None or training):
        option = "--start-train" if training else "--start-method"
        raise Invalid(option, expected="--start-data or --teacher beside it", got=Verbatim("neither"))
