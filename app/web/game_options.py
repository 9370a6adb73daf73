"""The options of a game as fields of a form, made from the JSON Schema of its config."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flask_babel import gettext

from app.core.validation import Schema, kinds_of, words_of
from app.games.base import Game


class OptionField(NamedTuple):
    """A form field of a game's config, in the language of the page.

    `choices` are pairs of a word and its label; empty for a field that is typed. `number` is a separate field that is
    shown when `other` is chosen.
    """

    name: str
    title: str
    help: str
    inputmode: str
    choices: Sequence[tuple[str, str]]
    other: str = ""
    number: "OptionField | None" = None


def option_fields(game: Game[Any]) -> list[OptionField]:
    """The options of a game, in their order."""
    return [option_field(name, schema) for name, schema in game.options.items()]


def option_field(name: str, schema: Schema) -> OptionField:
    """A form field from the JSON Schema of the value it sets, in the language of the page."""
    labels, other = schema.get("labels", {}), schema.get("other")
    choices = [(word, _translated_option_text(labels, word) or word) for word in words_of(schema)]
    types = {kind["type"] for kind in kinds_of(schema)}
    inputmode = "text" if "string" in types else "numeric" if types == {"integer"} else "decimal"
    title, text = _translated_option_text(schema, "title"), _translated_option_text(schema, "description")
    if other is None:
        return OptionField(name, title, text, inputmode, choices)
    number = OptionField(
        other["name"],
        _translated_option_text(other, "title"),
        _translated_option_text(other, "description"),
        "decimal",
        (),
    )
    word = other["word"]
    return OptionField(
        name, title, text, inputmode, [*choices, (word, _translated_option_text(other, "label"))], word, number
    )


def _translated_option_text(texts: Mapping[str, str], name: str) -> str:
    """A text in the language of the page; empty where there is none."""
    text = texts.get(name, "")
    return gettext(text) if text else ""


def field_titles(game: Game[Any]) -> Iterator[tuple[str, str]]:
    """The titles that forms give to the fields of a game's options and material, by name; in English."""
    for name, schema in game.options.items():
        yield name, schema["title"]
        if other := schema.get("other"):
            yield other["name"], other["title"]
    if game.material is not None:
        yield game.material.name, game.material.title
