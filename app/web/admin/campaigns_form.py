"""The launch form of campaigns: its fields, and the campaign that they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Request

from app.campaigns.presets import PRESETS
from app.campaigns.spec import (
    DATA_OF,
    GREEDY,
    METHODS,
    MOST_ITERATIONS,
    NONE,
    PARTNER,
    STARTS,
    CampaignSpec,
    mixes_supervised_rows,
    needs_rewards,
    read_spec,
    usual_training,
)
from app.core.config import Settings
from app.core.errors import AppError, Invalid, either
from app.core.validation import whole_number
from app.finetuning.config import LOCAL, Fields, find_method, read_config
from app.games import find_game
from app.games.base import JSON
from app.matches.lobby import new_seed, read_seed
from app.models import LanguageModel
from app.rounds.lifecycle import Material
from app.web.admin.game_fields import (
    material_defaults,
    material_field,
    material_files,
    option_defaults,
    read_material,
    read_options,
)
from app.web.admin.training_fields import read_lines
from app.web.forms import RefusedField

WEAK = "tiny-base"  # of the models that Parlor comes with, the one that has much to learn
FIELDS = ("epochs", "learning_rate", "batch")
SAMPLING = ("temperature", "top_k", "max_tokens")
START = "start_"  # before the names of fields of the training that a campaign starts with
_AS_THEY_ARE = (
    "base", "matches", "evaluation", "filter", "start", "evaluation_temperature", "partner", "method", "data_of",
    "start_data", "teacher", "start_method", "sft_data",
)  # fmt: skip
_CALLED = {"model": "base", "option": "base", "rewards": "method"}


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


def method_fields() -> Mapping[str, Fields]:
    """The fields of each method, with the defaults that campaigns have."""
    found = {}
    for name in METHODS:
        usual, fields = usual_training(name), find_method(name).job_fields
        found[name] = {field: {**of, "default": usual.get(field, of["default"])} for field, of in fields.items()}
    return found


# ---- Filling in --------------------------------------------------------------


def defaults(game: str, models: Sequence[LanguageModel], base: str = "", preset: str = "") -> JSON:
    """The form of a game as it is first shown, with the values of a preset; every value is text, as a browser sends it
    back, but for `partner`, which is several. Raises Invalid for an unknown preset.
    """
    names = [model.name for model in bases(models)]
    first = WEAK if WEAK in names else next(iter(names), "")
    known = find_game(game)
    sampling = {"temperature": 1.0, **known.sampling}
    found = {
        "game": game, "base": base or first, "iterations": "5", "matches": "500",
        "evaluation": "500", "filter": "", "start": STARTS[0], "method": METHODS[0], "data_of": DATA_OF[0],
        "decay": "", "role_weights": "1", "positive_only": "",
        "start_data": "", "teacher": "", "start_method": METHODS[0], "play_with": "", "sft_data": "",
        **option_defaults(known), **material_defaults(known),
        **dict.fromkeys((*FIELDS, "further"), ""), **dict.fromkeys((START + name for name in (*FIELDS, "further")), ""),
        **{name: str(sampling.get(name, "")) for name in SAMPLING},
        "evaluation_temperature": f"{GREEDY:g}", "partner": [PARTNER], "seed": "", "name": "",
    }  # fmt: skip
    return found | _preset(preset) if preset else found


def _preset(name: str) -> JSON:
    """The fields of the form that a preset fills in."""
    if name not in PRESETS:
        raise Invalid("preset", expected=either(PRESETS), got=name)
    fields = dict(PRESETS[name].fields)
    found = {name: str(value) for name, value in fields.pop("sampling").items()}
    for before, part in (("", "training"), (START, "start_training")):
        given = fields.pop(part, {})
        boxes = {before + name: _decimal(given[name]) for name in FIELDS if name in given}
        others = [f"{name} = {value}" for name, value in given.items() if name not in FIELDS]
        found |= {**boxes, before + "further": "\n".join(others)}
    return found | {name: str(value) for name, value in fields.items()}


def _decimal(value: float) -> str:
    """A number as people write it, without an exponent."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def typed(request: Request, game: str) -> JSON:
    """The form as it was sent; what came as a file is in its text field, and so comes back with the page."""
    form = {name: request.form.get(name, "").strip() for name in defaults(game, ()) if name != "partner"}
    own = {"game": game, "partner": request.form.getlist("partner")}
    return form | own | material_files(find_game(game), request)


# ---- Reading -----------------------------------------------------------------


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
    raw = {name: form[name] for name in _AS_THEY_ARE}
    raw |= {
        "game": game.name,
        "iterations": whole_number(form["iterations"] or 5, "iterations", 1, MOST_ITERATIONS),
        "config": read_options(game, form),
        "sampling": {name: form[name] or NONE for name in SAMPLING},
        "play_with": [part for each in form["play_with"].split(",") if (part := each.strip())],
    }
    if form["method"] in METHODS and needs_rewards(form["method"]):
        raw |= {"decay": form["decay"]}
        raw |= {name: "yes" if form[name] else "no" for name in ("role_weights", "positive_only")}
    if form["method"] in METHODS and not mixes_supervised_rows(form["method"]):
        raw["sft_data"] = ""  # the form does not show it
    seed = read_seed(form["seed"]) if form["seed"] else new_seed()
    read_spec(raw, seed)  # a method is looked at before its fields are
    raw["training"] = _training(form, "", form["method"])
    if form["start_data"] or form["teacher"]:
        raw["start_training"] = _training(form, START, form["start_method"])
    return CampaignForm(read_spec(raw, seed), form["name"], read_material(game, form, settings))


def _training(form: Mapping[str, Any], before: str, method: str) -> JSON:
    """The fields of a training that were typed, whose names on the form have something `before` them."""
    further = before + "further"
    boxes = {name: form[before + name] for name in FIELDS if form[before + name]}
    given = {**boxes, **read_lines(form[further], further, FIELDS)}
    try:
        return read_config(method, given)
    except Invalid as error:
        raise RefusedField(before + str(error.field) if error.field in FIELDS else further, error) from None
