"""The training fields as forms show them, made from the JSON Schema of methods and backends."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from flask_babel import gettext

from app.core.errors import Invalid, Phrase
from app.core.validation import Schema, choices_in, kinds_of
from app.finetuning.backends import backend_names, find_backend
from app.finetuning.config import JOB_DEFAULTS, LOCAL, Fields
from training.methods import all_methods
from training.processor import slow_precision


class TrainingField(NamedTuple):
    """A field that one or more methods take. `methods` are their names."""

    name: str
    title: str
    help: str
    inputmode: str
    methods: tuple[str, ...]


def training_fields(
    methods: Mapping[str, Fields], defaults: Mapping[str, Any] | None = None
) -> Mapping[str, TrainingField]:
    """The fields that a job may set, by name, in the language of the page. `methods` holds the fields of each method.

    `defaults` are values that a form uses in place of the methods' own.
    """
    schemas: dict[str, dict[str, Mapping[str, Any]]] = {}
    for method, fields in methods.items():
        for name, schema in fields.items():
            schemas.setdefault(name, {})[method] = schema
    return {name: training_field(name, of, (defaults or {}).get(name)) for name, of in schemas.items()}


def fields_at(backend: str) -> Mapping[str, Fields]:
    """The fields of trainings at a backend, by method."""
    return {method: find_backend(backend).fields(method) for method in all_methods()}


class TrainingBox(NamedTuple):
    """A training field at a backend that has its own box on the form; `of` is its schema by method."""

    name: str
    backend: str
    field: str
    of: Fields


def boxes(backend: str) -> Iterator[TrainingBox]:
    """The boxes of a backend's fields, in order. Fields with the same name may differ in meaning between backends."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for method, fields in fields_at(backend).items():
        for name, schema in fields.items():
            if "rank" in schema:
                found.setdefault(name, {})[method] = schema
    for field, of in sorted(found.items(), key=lambda each: next(iter(each[1].values()))["rank"]):
        yield TrainingBox(field if backend == LOCAL else f"{backend}-{field}", backend, field, of)


def chosen_boxes(schema: Schema) -> Iterator[TrainingBox]:
    """The boxes of local trainings by one of several methods, with the usual values there (`app.jobs.spec.asked`)."""
    methods = _usual_fields(schema)
    for field in schema["boxes"]:
        of = {method: fields[field] for method, fields in methods.items()}
        yield TrainingBox(schema.get("prefix", "") + field, LOCAL, field, of)


def fields_in_lines(schema: Schema) -> Mapping[str, TrainingField]:
    """Further fields of such trainings, in the language of the page."""
    return {name: of for name, of in training_fields(_usual_fields(schema)).items() if name not in schema["boxes"]}


def _usual_fields(schema: Schema) -> Mapping[str, Fields]:
    """The fields of each of these methods, with the usual values as defaults."""
    known = {method: (find_backend(LOCAL).fields(method), usual) for method, usual in schema["usual"].items()}
    return {
        method: {name: {**of, "default": usual.get(name, of["default"])} for name, of in fields.items()}
        for method, (fields, usual) in known.items()
    }


def with_further_fields() -> list[str]:
    """The backends whose trainings take fields that have no box."""
    return [name for name in backend_names() if _further(name)]


def further_fields() -> Mapping[str, TrainingField]:
    """The fields of local trainings that have no box."""
    known = training_fields(fields_at(LOCAL), JOB_DEFAULTS)
    return {name: known[name] for name in known if name in _further(LOCAL)}


def _further(backend: str) -> set[str]:
    own = {name for fields in fields_at(backend).values() for name in fields}
    return own - {box.field for box in boxes(backend)}


def read_lines(text: str, field: str, boxes: Collection[str]) -> dict[str, str]:
    """Training fields entered as lines such as width = 64, each at most once and none of the `boxes`.

    Raises Invalid for the form field that contains the lines.
    """
    found: dict[str, str] = {}
    for line in filter(None, (each.strip() for each in text.splitlines())):
        name, mark, value = (each.strip() for each in line.partition("="))
        if not mark or name in boxes or name in found:
            raise Invalid(field, expected=Phrase("a line such as width = 64, once for each field"), got=line)
        found[name] = value
    return found


def training_field(name: str, of: Fields, default: Any = None) -> TrainingField:
    """A field, from its schema in each method that accepts it, in the language of the page."""
    schema = next(iter(of.values()))
    values = {method: _default(each["default"] if default is None else default, each) for method, each in of.items()}
    same = len(set(values.values())) == 1
    empty = next(iter(values.values())) if same else ", ".join(f"{value} ({name})" for name, value in values.items())
    title, text = schema["title"], schema["description"]
    parts = [gettext(text)]
    if choices := choices_in(schema):
        parts.append(gettext("Choices: %(choices)s.", choices=", ".join(choices)))
    parts.append(gettext("Empty: %(value)s.", value=empty))
    if name == "precision" and slow_precision("bfloat16", "auto") is not None:
        parts.append(
            gettext("The processor of this machine has no instructions for bfloat16: float32 is many times as fast.")
        )
    types = {kind["type"] for kind in kinds_of(schema)}
    inputmode = "text" if "string" in types else "numeric" if types == {"integer"} else "decimal"
    return TrainingField(name, gettext(title), " ".join(parts), inputmode, tuple(of))


def _default(value: Any, schema: Mapping[str, Any]) -> str:
    """A default as people write it: without an exponent, and in words where it is null."""
    if value is None:
        unset: str = schema["unset"]
        return str(gettext(unset))
    return f"{value:.10f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
