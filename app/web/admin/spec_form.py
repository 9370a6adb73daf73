"""The form that asks for a job, made from the spec of its kind: its fields, what was typed, and what stands in them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import request
from flask_babel import gettext

from app.core.validation import Schema
from app.jobs.spec import JobSpec, fields_of
from app.web.game_options import option_field

Choices = Mapping[str, Sequence[tuple[str, str]]]  # of a field: values, and what each is called


class SpecField(NamedTuple):
    """A field of a form, in the language of the page."""

    name: str
    title: str
    help: str
    inputmode: str
    choices: Sequence[tuple[str, str]]


def form_fields(spec: type[JobSpec], choices: Choices) -> list[SpecField]:
    """The fields of a spec in their order; `choices` are those that only the database knows."""
    return [_field(name, schema, choices.get(name)) for name, schema in fields_of(spec).items()]


def _field(name: str, schema: Schema, choices: Sequence[tuple[str, str]] | None) -> SpecField:
    found = option_field(name, schema)
    unset = schema["unset"]  # a call with a text in it would be taken for that text
    text = f"{found.help} {gettext('Empty: %(value)s.', value=gettext(unset))}" if unset else found.help
    return SpecField(name, found.title, text, found.inputmode, found.choices if choices is None else choices)


def typed(spec: type[JobSpec]) -> dict[str, str]:
    """The fields as they were sent."""
    return {name: request.form.get(name, "").strip() for name in fields_of(spec)}


def filled_in(spec: type[JobSpec], given: Mapping[str, Any]) -> dict[str, str]:
    """The fields as they are first shown, or for a spec that was: what is not given has its default."""
    return {name: _text(given.get(name, schema.get("default"))) for name, schema in fields_of(spec).items()}


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
