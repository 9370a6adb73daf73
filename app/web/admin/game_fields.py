"""The form fields of a game: its options, made from the JSON Schema of its config, and its material.

The forms of rounds and of campaigns both have these fields. Their values are text, as a browser sends it back.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flask import request
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import AppError, Invalid, Phrase
from app.core.validation import Schema, choices_in, kinds_of, real_number, words_of
from app.games import find_game
from app.games.base import JSON, Game
from app.matches.material import server_file
from app.registry import round_models
from app.rounds.lifecycle import Material
from app.rounds.material import material_of_file, material_of_text, own_material
from app.web.admin.uploaded_texts import AGAIN, UPLOAD, read_uploads, uploaded_text
from app.web.forms import RefusedField, one_of
from app.web.game_options import option_fields
from app.web.seats import settings
from app.web.threads import off_loop

GAME, MATERIAL = "game", "material"  # widgets, and the spec fields that use them
MOST_UPLOADED = 400_000  # characters in a file of material
GENERATED, LIST, SERVER = "generated", "list", "server"


# ---- Options --------------------------------------------------------------------


def option_defaults(game: Game[Any]) -> JSON:
    """The fields of a game's options with their initial values."""
    return option_values(game, {})


def option_values(game: Game[Any], config: Mapping[str, Any]) -> JSON:
    """The fields of a game's options, filled in from a config."""
    found: JSON = {}
    for name, schema in game.options.items():
        value = config.get(name, schema.get("default"))
        other = schema.get("other")
        if other is not None:
            found[other["name"]] = _typed_value(value if value not in words_of(schema) else other["default"])
            value = value if value in words_of(schema) else other["word"]
        found[name] = _typed_value(value)
    return found


def sent_options(game: Game[Any]) -> JSON:
    """The fields of a game's options as they were sent."""
    return {name: request.form.get(name, "").strip() for name in option_defaults(game)}


def read_options(game: Game[Any], form: Mapping[str, Any]) -> JSON:
    """The complete options that a form gives; an empty field takes its default. Raises Invalid."""
    raw = {name: _read_option(name, schema, form) for name, schema in game.options.items() if form[name]}
    config = game.config(raw).to_json()
    return {name: config[name] for name in game.options if name in config}


def _read_option(name: str, schema: Schema, form: Mapping[str, Any]) -> Any:
    words, other = words_of(schema), schema.get("other")
    if other is None:
        return one_of(name, form, words) if choices_in(schema) else form[name]
    if one_of(name, form, (*words, other["word"])) != other["word"]:
        return form[name]
    number = next(kind for kind in kinds_of(schema) if kind["type"] == "number")
    return real_number(form[other["name"]], other["name"], number["minimum"], number["maximum"])


def _typed_value(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


# ---- Seats ------------------------------------------------------------------------

_SEATS = ("model_0", "model_1")


def sent_seats(_game: Game[Any]) -> JSON:
    """The models of both seats, and all that were ticked for a cross-play."""
    return {**{name: request.form.get(name, "") for name in _SEATS}, "models": request.form.getlist("models")}


def shown_seats(_game: Game[Any], models: Sequence[str] | None, _like: bool) -> JSON:
    """The seat fields, filled in with the models of a spec."""
    first, last = (models[0], models[-1]) if models else ("", "")
    return {_SEATS[0]: first, _SEATS[1]: last, "models": []}


def read_seats(_game: Game[Any], form: Mapping[str, Any]) -> Sequence[str]:
    """The models that play. Raises Invalid for a seat without one."""
    if form["cross_play"]:
        ticked: Sequence[str] = form["models"]
        return ticked
    for name in _SEATS:
        if not form[name]:
            raise Invalid(name, expected=Phrase("a model"), got=Phrase("none"))
    return [form[name] for name in _SEATS]


# ---- Material -------------------------------------------------------------------


def material_defaults(game: Game[Any]) -> JSON:
    """The fields of a game's material with their initial values; none for a game without material."""
    kind = game.material
    if kind is None:
        return {}
    return {kind.name: LIST if kind.listed() else GENERATED, f"{kind.name}_text": "", f"{kind.name}_name": ""}


def sent_material(game: Game[Any]) -> JSON:
    """The material fields as they were sent; the content of an uploaded file is in its text field."""
    texts = {name: request.form.get(name, "").strip() for name in material_defaults(game)}
    return texts if game.material is None else {**texts, **read_uploads(request, [game.material.name], MOST_UPLOADED)}


def shown_material(game: Game[Any], source: str | None, like: bool) -> JSON:
    """The material fields, for material from `source` if the form is filled in from an earlier job."""
    again = {material_field(game): AGAIN} if like and source is not None and game.material is not None else {}
    return {**material_defaults(game), **again}


def material_field(game: Game[Any]) -> str:
    """The field that an error about a game's material is shown at; empty for a game without material."""
    return "" if game.material is None else game.material.name


def read_material(
    game: Game[Any], form: Mapping[str, Any], known_settings: Settings, again: Material | None = None
) -> Material | None:
    """The material that a form names; None if each match draws its own. Raises Invalid and RefusedField.

    `again` is the material of the round that the form was filled in from.
    """
    kind = game.material
    if kind is None:
        return None
    name = kind.name
    known = [LIST if kind.listed() else GENERATED, *([SERVER] if kind.setting else []), UPLOAD]
    chosen = one_of(name, form, known if again is None else [*known, AGAIN])
    if chosen == AGAIN:
        return again
    if chosen == UPLOAD:
        return _uploaded(name, form, lambda text, source: material_of_text(kind, text, source))
    if chosen != SERVER:
        return own_material(game)
    path = server_file(kind, known_settings)
    if not path:
        raise Invalid(
            name,
            expected=Phrase("a file in the setting %(setting)s", setting=kind.setting),
            got=Phrase("none"),
            remedy=Phrase("upload one instead"),
        )
    return _read_or_refuse_field(name, lambda: material_of_file(kind, path))


def _uploaded(name: str, form: Mapping[str, Any], read_text: Callable[[str, str], Material]) -> Material:
    """Material that was uploaded or typed, read by `read_text`. Raises Invalid and RefusedField."""
    text, source = uploaded_text(name, form, MOST_UPLOADED)
    return _read_or_refuse_field(name, lambda: off_loop(read_text, text, source))


def _read_or_refuse_field(name: str, work: Callable[[], Material]) -> Material:
    """Return what `work` returns; an error it raises becomes an error of the field."""
    try:
        return work()
    except AppError as error:
        raise RefusedField(name, error) from None


# ---- Widgets of a spec ----------------------------------------------------------


class _GameWidget(NamedTuple):
    """A spec field that becomes several form fields, depending on the form's game.

    `shown` is told whether the form is filled in from an earlier job.
    """

    sent: Callable[[Game[Any]], JSON]
    read: Callable[[Game[Any], Mapping[str, Any]], Any]
    shown: Callable[[Game[Any], Any, bool], JSON]


GAME_WIDGETS: Mapping[str, _GameWidget] = {
    "seats": _GameWidget(sent_seats, read_seats, shown_seats),
    "options": _GameWidget(sent_options, read_options, lambda game, config, _like: option_values(game, config or {})),
    MATERIAL: _GameWidget(sent_material, lambda _game, _form: None, shown_material),
}


def of_game(session: Session, widget: str, form: Mapping[str, Any]) -> tuple[Sequence[tuple[str, ...]], Any]:
    """The choices of such a field, if it has any, and what else its fragment shows."""
    game = find_game(form[GAME])
    if widget == "seats":
        return [(row.name, row.name) for row in round_models(session, game.name)], game.roles
    if widget == "options":
        return (), option_fields(game)
    return (), (game.material, server_file(game.material, settings()))


def hidden_material(form: Mapping[str, Any]) -> str:
    """The field and value that hide the questions about a list of material."""
    return f"{material_field(find_game(form[GAME]))}={GENERATED}"
