"""The options of a command that creates a job, made from the spec of its kind."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from app.cli.base import RepeatableOption, is_name, is_pair, read_pairs
from app.cli.material import material_parameters, own_file
from app.core.errors import FieldError, Invalid, Verbatim
from app.core.validation import Schema, choices_in
from app.core.yaml_reader import read_yaml
from app.jobs.spec import PRESET, SHIPPED, VERSION, JobBudget, JobSpec, fields_of, option_of, parts_of, usual_of
from app.society.text_files import read_bytes

S = TypeVar("S", bound=JobSpec)
MATERIAL = "material"  # the widget, and the field, whose options are named by the kinds of material
_IN = "__"  # separates a field from its part's field in a parameter name, which must be an identifier
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def spec_options(spec: type[S], *, argument: str | None = None, without: Collection[str] = ()) -> Decorator:
    """Give a command an option for each field of a spec, and `--spec FILE` for all of them; it gets the spec as `spec`.

    Options override the file. Of commands that share a spec, each may have another field as its `argument`, and be
    `without` options for fields of the others. Raises Invalid, when the command runs, if the spec is not valid; this
    and every other refusal of the command names the option if its name differs from the field's.
    """
    parameters, typed = dict(_parameters_of_spec(spec, argument, without)), dict(_options_by_field(spec))

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(spec_file: Path | None, **given: Any) -> Any:
            options = {name: given.pop(name) for name in parameters}
            with _refusals_of_options(typed):
                if argument and spec_file is None and not options[argument]:
                    raise Invalid(argument, expected="a value or --spec FILE", got=Verbatim("none"))
                return function(spec=_read_spec_from_options(spec, spec_file, options), **given)

        command: Callable[..., Any] = click.option(
            "--spec", "spec_file", type=Path, metavar="FILE", help="All of it from a file, YAML or JSON."
        )(call)
        for name in reversed([*parameters]):
            command = parameters[name](command)
        return command

    return decorate


def read_files(spec: JobSpec) -> dict[str, Any]:
    """The contents of the files that a spec names, by field; None if none is given and none ships. Raises Invalid."""
    found = {}
    for name, file in spec.files.items():
        given = getattr(spec, name) or SHIPPED
        path = file.shipped if given == SHIPPED else Path(given)
        found[name] = None if path is None else file.parse(read_bytes(path, name), given)
    return found


@contextmanager
def _refusals_of_options(typed: Mapping[str, str]) -> Iterator[None]:
    """Refusals inside name the options in `typed`, by their fields' paths."""
    try:
        yield
    except FieldError as error:
        field, _, inner = (error.field or "").partition(".")
        option = typed.get(error.field or "") or (f"{typed[field]} {inner}" if field in typed else error.field)
        raise error.of(option) from None


def budget_options() -> list[Decorator]:
    """The options for raising the budget of a job."""
    return [_parameter(name, schema) for name, schema in fields_of(JobBudget).items()]


@contextmanager
def refusals_of_budget() -> Iterator[None]:
    """Refusals inside name the options of a budget that is in the field `budget`."""
    with _refusals_of_options({f"budget.{name}": option_of(name, of) for name, of in fields_of(JobBudget).items()}):
        yield


def read_budget(given: Mapping[str, Any]) -> JobBudget:
    """The budget that the options give. Raises Invalid."""
    with refusals_of_budget():
        return JobBudget.read(given, "budget")


def add_budget_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a budget; it gets `usd` and `tokens`."""
    for option in reversed(budget_options()):
        command = option(command)
    return command


# ---- Options -----------------------------------------------------------------------


def _parameters_of_spec(
    spec: type[JobSpec], argument: str | None, without: Collection[str]
) -> Iterator[tuple[str, Decorator]]:
    """The parameters of a command, each with its click parameter name."""
    parts = parts_of(spec)
    if spec.presets:
        known = " ".join(f"{name} is {_in_words(fields)}." for name, fields in spec.presets.items())
        words = f"Published settings, each of which another option may change. {known}"
        yield PRESET, click.option(f"--{PRESET}", type=click.Choice([*spec.presets]), help=words)
    for name, schema in fields_of(spec).items():
        part = parts.get(name)
        if name in without:
            continue
        if name == argument:
            schema = {**schema, "argument": True}
        if schema.get("widget") == MATERIAL:
            yield from material_parameters(name + _IN, schema.get("note", ""))
            continue
        if PRESET in schema:
            words = f"{schema['title']}, by name: {schema['description']}"
            kind, metavar = (None, "NAME") if part is None else (click.Choice([*part.presets]), None)
            called = f"{name}{_IN}{PRESET}"
            yield called, click.option(f"--{schema[PRESET]}", called, type=kind, metavar=metavar, help=words)
        if part is None or "option" in schema:
            yield name, _parameter(name, schema)
        else:
            for field, of in fields_of(part).items():
                yield f"{name}{_IN}{field}", _parameter(field, of, f"{name}{_IN}{field}")


def _parameter(name: str, schema: Schema, called: str = "") -> Decorator:
    """The option of a field; numbers stay text, so that refusals use the same wording as a form."""
    metavar = schema.get("metavar", "TEXT")
    if schema.get("argument"):
        return click.argument(name, metavar=metavar, required=False)
    usual = usual_of(schema)
    shown = "" if usual is None or schema.get("type") == "boolean" else f" [default: {usual}]"
    many = choices_in(schema) if "|" not in metavar else ()
    words = f" One of {', '.join(many)}." if many else ""
    note = f" [{schema['note']}]" if schema.get("note") else ""
    text = f"{schema['title']}: {schema['description']}{words}{shown}{note}"
    option = option_of(name, schema)
    if schema.get("type") == "boolean":
        both = f"{option}/--no-{option[2:]}" if schema.get("default") else option
        return click.option(both, called or name, is_flag=True, default=None, help=text)
    if (kind := _repeated(schema)) is not None:
        belongs = is_pair if kind == "pairs" else is_name
        return click.option(option, called or name, cls=RepeatableOption, belongs=belongs, metavar=metavar, help=text)
    return click.option(option, called or name, metavar=metavar, help=text)


def _in_words(fields: Mapping[str, Any]) -> str:
    """The fields of a preset in words."""
    found = []
    for name, value in fields.items():
        words = usual_of({"default": value}) if isinstance(value, bool) else str(value)
        if isinstance(value, Mapping):
            words = " ".join(f"{key}={each}" for key, each in value.items())
        found.append(f"{name} {words}")
    return ", ".join(found)


def _options_by_field(spec: type[JobSpec]) -> Iterator[tuple[str, str]]:
    """The options whose names differ from their fields', by the fields' paths in the spec."""
    parts = parts_of(spec)
    for name, schema in fields_of(spec).items():
        if PRESET in schema:
            yield f"{name}.{PRESET}", f"--{schema[PRESET]}"
        if name in parts and "option" not in schema:
            yield from ((f"{name}.{field}", option_of(field, of)) for field, of in fields_of(parts[name]).items())
        elif (option := option_of(name, schema)) != f"--{name}":
            yield name, option


def _repeated(schema: Schema) -> str | None:
    """The kind of values that a repeatable option takes: names, names with shares, or pairs of K=V."""
    if schema.get("type") == "array":
        return "names"
    if schema.get("widget") == "shares":
        return "shares"
    return "pairs" if "$ref" in schema or schema.get("type") == "object" else None


# ---- Reading -----------------------------------------------------------------------


def _read_spec_from_options(spec: type[S], file: Path | None, options: Mapping[str, Any]) -> S:
    """The spec that the options and the file give. Raises Invalid."""
    asked = _spec_fields_of_options(spec, options)
    files = asked.pop(MATERIAL, None)
    found = _spec_of(spec, file, {**asked, MATERIAL: next(iter(files.values()))} if files else asked)
    if files:
        own_file(found.game, files)  # type: ignore[attr-defined]  # a spec with material has a game
    return found


def _spec_fields_of_options(spec: type[JobSpec], options: Mapping[str, Any]) -> dict[str, Any]:
    """The given options in the form of a spec file; those not given are left out."""
    found: dict[str, Any] = {}
    for called, value in options.items():
        name, _, field = called.partition(_IN)
        if value is None or value == ():
            continue
        schema = fields_of(spec).get(name, {})
        if field:
            found.setdefault(name, {})[field] = value
        elif _repeated(schema) == "shares":
            found[name] = _shares(value, name, schema.get("share", 1.0))
        elif _repeated(schema) == "pairs":
            found[name] = {**found.get(name, {}), **read_pairs(value, option_of(name, schema))}
        else:
            found[name] = value
    return found


def _shares(given: tuple[str, ...], name: str, usual: float | str) -> dict[str, Any]:
    """Models with their shares, or the usual one if none is given. Raises Invalid for a model named twice."""
    found: dict[str, Any] = {}
    for model, mark, share in (each.partition("=") for each in given):
        if model in found:
            raise Invalid(name, expected="each model once", got=model)
        found[model] = share if mark else usual
    return found


def _spec_of(spec: type[S], file: Path | None, given: dict[str, Any]) -> S:
    """The spec in a file, overridden by the given options. Raises Invalid, with the line of the file."""
    if file is None:
        return spec.read(given)
    document = read_yaml(file)
    try:
        return spec.of_json({VERSION: spec.version, **document.value}, given)
    except Invalid as error:
        name = error.field or ""
        path = (name,) if name in document.value else tuple(name.split("."))  # a key may have a dot in it
        if path[0] in document.value and not _is_in(given, path):
            line = document.line(path)
            raise error.at(f"{line.source}:{line.number}") from None
        raise


def _is_in(given: Any, path: tuple[str, ...]) -> bool:
    """Whether `given` has a value at this path, or something on the way there that is not a mapping."""
    for name in path:
        if not isinstance(given, Mapping):
            return True
        if name not in given:
            return False
        given = given[name]
    return True
