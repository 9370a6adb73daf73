"""The fields of trainings as forms show them: made from the JSON Schema of methods and backends."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from flask_babel import gettext

from app.core.errors import Invalid, Phrase
from app.core.validation import kinds_of, words_of
from app.finetuning.config import Fields


@dataclass(frozen=True, slots=True)
class TrainingField:
    """A field that one or more methods take. `methods` are their names."""

    name: str
    title: str
    help: str
    inputmode: str
    methods: tuple[str, ...]


def training_fields(
    methods: Mapping[str, Fields], defaults: Mapping[str, Any] | None = None
) -> Mapping[str, TrainingField]:
    """The fields that jobs may be given, by name, in the language of the page. `methods` are those of each method.

    `defaults` are values of fields that a form uses in place of the methods' own.
    """
    schemas: dict[str, dict[str, Mapping[str, Any]]] = {}
    for method, fields in methods.items():
        for name, schema in fields.items():
            schemas.setdefault(name, {})[method] = schema
    return {name: _field(name, of, (defaults or {}).get(name)) for name, of in schemas.items()}


def read_lines(text: str, field: str, boxes: Collection[str]) -> dict[str, str]:
    """Fields of a training that were typed in lines such as width = 64, each once and none of the `boxes`.

    Raises Invalid for the field of the form that the lines stand in.
    """
    found: dict[str, str] = {}
    for line in filter(None, (each.strip() for each in text.splitlines())):
        name, mark, value = (each.strip() for each in line.partition("="))
        if not mark or name in boxes or name in found:
            raise Invalid(field, expected=Phrase("a line such as width = 64, once for each field"), got=line)
        found[name] = value
    return found


def _field(name: str, of: Mapping[str, Mapping[str, Any]], default: Any) -> TrainingField:
    schema = next(iter(of.values()))
    values = {method: _default(each["default"] if default is None else default, each) for method, each in of.items()}
    same = len(set(values.values())) == 1
    empty = next(iter(values.values())) if same else ", ".join(f"{value} ({name})" for name, value in values.items())
    title, text = schema["title"], schema["description"]
    parts = [gettext(text)]
    if (choices := words_of(schema)) and len(kinds_of(schema)) == 1:
        parts.append(gettext("Choices: %(choices)s.", choices=", ".join(choices)))
    parts.append(gettext("Empty: %(value)s.", value=empty))
    types = {kind["type"] for kind in kinds_of(schema)}
    inputmode = "text" if "string" in types else "numeric" if types == {"integer"} else "decimal"
    return TrainingField(name, gettext(title), " ".join(parts), inputmode, tuple(of))


def _default(value: Any, schema: Mapping[str, Any]) -> str:
    """A default as people write it: without an exponent, and in words where it is null."""
    if value is None:
        unset: str = schema["unset"]
        return str(gettext(unset))
    return f"{value:.10f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
