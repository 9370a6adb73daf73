"""The launch form of campaigns: its fields, and the campaign that they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Request

from app.campaigns.spec import GREEDY, METHODS, MOST_ITERATIONS, PARTNER, STARTS, TRAINING, CampaignSpec, read_spec
from app.config import Settings
from app.datasets.filters import ABOVE_AVG
from app.errors import AppError
from app.finetuning.config import LOCAL, read_config
from app.games import find_game
from app.games.base import JSON
from app.matches.lobby import new_seed, read_seed
from app.models import LanguageModel
from app.rounds.lifecycle import Material
from app.validation import whole_number
from app.web.admin.game_fields import (
    material_defaults,
    material_field,
    material_files,
    option_defaults,
    read_material,
    read_options,
)
from app.web.forms import RefusedField

WEAK = "tiny-base"  # of the models that Parlor comes with, the one that has much to learn
FIELDS = ("epochs", "learning_rate", "batch")
_AS_THEY_ARE = ("base", "matches", "evaluation", "filter", "start", "evaluation_temperature", "partner")
_CALLED = {"model": "base", "option": "base"}


@dataclass(frozen=True, slots=True)
class CampaignForm:
    """What the form asks for; an empty name is to be made up."""

    spec: CampaignSpec
    name: str
    material: Material | None


def bases(models: Sequence[LanguageModel]) -> list[LanguageModel]:
    """The models that can be trained."""
    return [model for model in models if model.kind == LOCAL]


def partners(models: Sequence[LanguageModel]) -> list[str]:
    """The models that every model of a campaign can be evaluated against, scripted players first."""
    return [model.name for model in sorted(models, key=lambda model: model.kind != "scripted")]


def defaults(game: str, models: Sequence[LanguageModel], base: str = "") -> JSON:
    """The form of a game as it is first shown; every value is text, as a browser sends it back."""
    names = [model.name for model in bases(models)]
    first = WEAK if WEAK in names else next(iter(names), "")
    return {
        "game": game, "base": base or first, "iterations": "5", "matches": "500",
        "evaluation": "500", "filter": ABOVE_AVG, "start": STARTS[0],
        **option_defaults(find_game(game)), **material_defaults(find_game(game)),
        "epochs": str(TRAINING["epochs"]), "learning_rate": str(TRAINING["learning_rate"]), "batch": "",
        "temperature": "1.0", "evaluation_temperature": f"{GREEDY:g}", "partner": PARTNER, "seed": "", "name": "",
    }  # fmt: skip


def typed(request: Request, game: str) -> JSON:
    """The form as it was sent; what came as a file stands in its text field, and so comes back with the page."""
    form = {name: request.form.get(name, "").strip() for name in defaults(game, ())}
    return form | {"game": game, **material_files(find_game(game), request)}


def read(form: Mapping[str, Any], settings: Settings) -> CampaignForm:
    """What a form asks for. Raises RefusedField."""
    try:
        return _read(form, settings)
    except AppError as error:
        raise RefusedField(field_of(error, form["game"]), error) from None


def field_of(error: AppError, game: str) -> str:
    """The field of the form that an error of a layer below is about; that of the material where it names no other."""
    name = error.field or ""
    options = find_game(game).options
    name = next(iter(options), "") if name == "config" else _CALLED.get(name, name)
    return name if name in defaults(game, ()) else material_field(find_game(game))


def _read(form: Mapping[str, Any], settings: Settings) -> CampaignForm:
    game = find_game(form["game"])
    training = {name: form[name] for name in FIELDS if form[name]}
    spec = read_spec(
        {
            **{name: form[name] for name in _AS_THEY_ARE},
            "game": game.name,
            "iterations": whole_number(form["iterations"] or 5, "iterations", 1, MOST_ITERATIONS),
            "config": read_options(game, form),
            "training": read_config(METHODS[0], training),
            "sampling": {"temperature": form["temperature"]} if form["temperature"] else {},
        },
        seed=read_seed(form["seed"]) if form["seed"] else new_seed(),
    )
    return CampaignForm(spec, form["name"], read_material(game, form, settings))
