"""How two models are to answer held-out questions, as fields of a form; what is left empty is the model's own."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask_babel import gettext

from app.core.errors import AppError, FieldError, Phrase
from app.model_calls.question_templates import SAMPLING_PRESETS, read_sampling
from app.players.base import ChatSampling
from app.web.forms import RefusedField
from app.web.game_options import OptionField
from app.web.translations import N_

PRESET = "sampling"  # the field that names a preset
_BOX = "answer_"  # before the names of the others, as a form may have other fields of these names
_TITLES = {
    "temperature": N_("Temperature of the answers"),
    "top_p": N_("Top-p of the answers"),
    "top_k": N_("Top-k of the answers"),
    "max_tokens": N_("Most tokens of an answer"),
    "no_repeat_ngram": N_("Tokens in a row that never come twice"),
}
_HINTS = {
    "temperature": N_("0 to 2."),
    "top_p": N_("0 to 1."),
    "top_k": N_("Of local models."),
    "max_tokens": N_("What is longer is cut off."),
    "no_repeat_ngram": N_("Of local models. 2: no pair of tokens is written twice."),
}
NAMES = tuple(_TITLES)  # as errors have them
FIELDS = (PRESET, *(_BOX + name for name in _TITLES))


def sampling_fields() -> list[OptionField]:
    """The fields, in the language of the page, but for that of the preset."""
    modes = {"temperature": "decimal", "top_p": "decimal"}
    return [
        OptionField(_BOX + name, gettext(title), gettext(_HINTS[name]), modes.get(name, "numeric"), ())
        for name, title in _TITLES.items()
    ]


def sampling_presets() -> Sequence[tuple[str, str]]:
    """The presets as choices of a field, that of none first."""
    known = {"published": gettext("published: temperature 0.7, top-p 0.9, 256 tokens, no pair of tokens twice")}
    return [("", gettext("each model’s own")), *((name, known.get(name, name)) for name in SAMPLING_PRESETS)]


def filled_in(sampling: Mapping[str, Any]) -> dict[str, str]:
    """The fields as they are for a sampling, by name; what it leaves open is empty."""
    given = {name: sampling.get(name) for name in _TITLES}
    return {PRESET: "", **{_BOX + name: "" if value is None else f"{value:g}" for name, value in given.items()}}


def read(form: Mapping[str, str]) -> ChatSampling:
    """What a form asks for. Raises RefusedField."""
    given = {name: form[_BOX + name] for name in _TITLES if form[_BOX + name]}
    try:
        return read_sampling(given, form[PRESET] or None)
    except AppError as error:
        raise refusal(error) from None


def refusal(error: AppError) -> RefusedField:
    """An error about the sampling at its field, with what that is called there; any other at its own."""
    name = error.field or ""
    if name not in _TITLES or not isinstance(error, FieldError):
        return RefusedField(name, error)
    title = _TITLES[name]  # a Phrase with a text in it would be taken for that text
    return RefusedField(_BOX + name, type(error)(name, **{**error.parts, "subject": Phrase(title)}))
