"""Facts of matches, rounds, calls and trainings as pages show them: a label for each name, and its value in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Flask
from flask_babel import format_currency, format_decimal, get_locale, gettext
from jinja2.filters import do_filesizeformat

from app.games import GAMES
from app.web.labels import LABELS, TRAINING_TITLES
from app.web.translations import N_

# Names of what no form has a field for; "objective" and the like are named as in forms.
_FACTS: Mapping[str, str] = {
    "characters_before_cut": N_("Characters before it was cut"), "counts": N_("On the table"), "device": N_("Device"),
    "dtype": N_("Computed in"), "finish_reason": N_("Ended by"),
    "cost": N_("Cost by the server, USD"), "fingerprint": N_("Fingerprint of the server"),
    "left_out": N_("Parts left out"), "provider": N_("Provider"), "sampling_state": N_("State of the sampling"),
    "refused": N_("Refused by the server, not sent"),
    "engine": N_("Engine"), "server": N_("Server"),
    "first": N_("Moves first"), "guess": N_("Guess"), "right": N_("Guessed right"),
    "lenient": N_("Lenient reading of moves"), "limit": N_("Maximum moves"),
    "max_new_tokens": N_("Maximum tokens per move"),
    "prompt_sha256": N_("Hash of the prompt's tokens"), "said": N_("Word said"),
    "structured": N_("Moves as JSON"),
    "tokenizer": N_("Tokenizer"), "values": N_("Worth to each seat"), "word": N_("Word"),
}  # fmt: skip
_OF_ONE_SEAT: Mapping[str, str] = {"values": N_("Worth")}  # names for a seat's own ones
_VALUES: Mapping[str, Mapping[Any, str]] = {  # of facts whose values have names; worded as in forms
    **{name: schema["labels"] for game in GAMES.values() for name, schema in game.fields.items() if "labels" in schema},
    "first": {0: N_("first seat"), 1: N_("second seat")},
}


def register(app: Flask) -> None:
    """Register the template filters."""
    for each in (fact_label, fact, in_field_order, training_label, training_value, four_digits, dollars, file_size):
        app.add_template_filter(each)


def fact_label(name: str, own: bool = False) -> str:
    """The label of a fact on a page; without one, its stored name without underscores.

    `own`: of one seat alone.
    """
    names = (_OF_ONE_SEAT, _FACTS, LABELS) if own else (_FACTS, LABELS)
    known = next((each[name] for each in names if name in each), name.replace("_", " ").capitalize())
    return str(gettext(known))


def in_field_order(config: Mapping[str, Any], game: str) -> dict[str, Any]:
    """A config in the order of its game's fields, which PostgreSQL does not keep."""
    fields = [name for name in GAMES[game].fields if name in config] if game in GAMES else []
    return {**{name: config[name] for name in fields}, **config}


def fact(value: Any, name: str = "") -> str:
    """The value of a fact in words, with special words for those in `_VALUES`; nested lists are separated by
    slashes.
    """
    if isinstance(value, str | int) and value in _VALUES.get(name, ()):
        return str(gettext(_VALUES[name][value]))
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(gettext("yes") if value else gettext("no"))
    if isinstance(value, int | float):
        return str(format_decimal(value, "0.######")).replace("-", "−")
    if isinstance(value, Mapping):
        if name == "response_format":  # with a schema, which belongs in files
            return str(value.get("type"))
        return ", ".join(f"{fact_label(key)}: {fact(each, key)}" for key, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        between = " / " if any(isinstance(each, Sequence) and not isinstance(each, str) for each in value) else ", "
        return between.join(map(fact, value))
    return value or "–"


def training_label(name: str) -> str:
    """The label of a training field; a field that no method has any more keeps its stored name."""
    return str(gettext(TRAINING_TITLES[name])) if name in TRAINING_TITLES else name


def training_value(value: Any) -> str:
    """The value of a training field in full precision; a dash if it is off, or left to the training."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _decimal(value)
    return fact(value)


def four_digits(value: float | None) -> str:
    """A training figure with four significant digits, as figures.js writes it; empty for None."""
    return "" if value is None else _decimal(float(f"{value:.4g}"))


def dollars(amount: float, digits: str = "") -> str:
    """US dollars in the format of the page's language, to the cent, or below one dollar to a hundredth of a cent.

    `digits`: the decimal places, as in a number pattern, such as 00####.
    """
    pattern = get_locale().currency_formats["standard"].pattern
    behind = digits or ("00" if amount >= 1 or amount == 0 else "0000")
    return str(format_currency(amount, "USD", pattern.replace("0.00", f"0.{behind}"), currency_digits=False))


def file_size(size: int) -> str:
    """The size of a file in a suitable unit, in the number format of the page's language."""
    amount, unit = do_filesizeformat(size).split()
    return f"{format_decimal(float(amount), '0.0' if '.' in amount else '0')} {unit}"


def _decimal(value: float) -> str:
    return str(format_decimal(value, "0.##############")).replace("-", "−")
