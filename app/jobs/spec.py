"""What can be asked of a job, described once: each field with its type, limits, default, title and help. Pure.

The `spec.py` of a kind has a JobSpec. Made from it are the options of its command (app/cli/spec_options.py), its form
(app/web/admin/spec_form.py), what both refuse, its JSON, its JSON Schema and its table in docs/jobs.md.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core.errors import Invalid, Phrase, either
from app.core.validation import Schema, invalid_of, kinds_of, read_value
from app.core.validation import fields_of as fields_of

VERSION = "version"  # the key of a stored spec's version
SHIPPED = "shipped"  # in place of a file: the one that comes with Parlor
PRESET = "preset"  # the key of a part's preset, over which its fields are laid
_LIMITS = ("ge", "gt", "le", "lt", "min_length", "max_length", "default_factory")  # what pydantic is told of a field


class TextFile(NamedTuple):
    """How the file of a field is read: `parse` takes its content and what errors call it.

    `shipped` is read where no file is given, if Parlor ships one. `accept` is for the file dialog of a form.
    `in_process`: `parse` starts a process and waits for it, which on an event loop no thread but its own may do.
    `with_files`: of a file that names others, puts the texts of those, by name, to what `parse` has read.
    """

    parse: Callable[[bytes, str], Any]
    shipped: Path | None
    accept: str
    in_process: bool = False
    with_files: Callable[[Any, Mapping[str, str]], Any] | None = None


def asked(title: str, text: str, default: Any = ..., **said: Any) -> Any:
    """A field of a spec: `title` heads it in forms, `text` explains it there and on the command line.

    What else may be said of it, beside pydantic's limits and `default_factory`:
    unset: what an empty field stands for. labels: what the words that it may be are called (an empty one, too), or a
        part's presets.
    empty: what an empty field of a form stands for, where that is the word `none` and not the default.
    note: what the command line says besides. hint: of material, what a form says of it.
    metavar, option, argument: its placeholder on the command line, its name where that is another, whether it has none.
        A part with an option takes `K=V`, one without has an option for each field. preset: the option of its preset.
    widget: how a form asks for it where its type does not say so: model, models, shares, dataset, file, training, base,
        or registry for one of the `methods` of training or of the `backends` that do it, as `registry` says;
        names (several in one box), radio, day, known (one of the `of`: games, models, …), lines (name = value each),
        written: a file whose text can be changed in the form, or upload: a file of as many MB as the setting `most`
        says, which the form has read by itself;
        game, and of the game that the field `game` names: seats (two models, or all of a cross-play), options (its
        settings), material.
        use: of models, a key of `app.registry.named.USES`. suggested: the model that a form begins with, such as the
        scripted observer or the first that can be trained.
        method: of a training, whose fields these are; `by`: the field that has its backend, which may have others;
        `chosen`: the field that has the method, where that is one of those of which `usual` has the usual values of
        fields. boxes: of the fields, then, those that have a box of their own.
        share: of shares, that of a model that is given none.
        kind: of the datasets to choose from. backend: of the models to choose from.
    heading: of the section of the form that it begins. prefix: of the names that the fields of a part or a training
        have in a form.
        fills: whether presets fill the form in. without: fields of a part that are not asked for in a form. folded:
        the words under which its fields but the `first` are folded away.
        unless: the field and the value with which it is hidden.
    beside: material, of a field that a form has where the game has some. repeats: whether a list may name one twice.
    once: whether a form that is filled in like an earlier job leaves it empty.
    """
    limits = {name: said.pop(name) for name in _LIMITS if name in said}
    if "default_factory" not in limits:
        limits["default"] = default
    return Field(title=title, description=text, json_schema_extra=said, **limits)


class SpecPart(BaseModel):
    """Fields that belong together: those of a spec, or settings inside of one, which may have presets by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def read(cls, raw: Mapping[str, Any], at: str = "") -> Self:
        """What came from a form, a command or a file; numbers may have come as text, and an empty text or null stands
        for the default. `at` is the field that it is a part of. Raises Invalid, naming the field.
        """
        under, fields, known = f"{at}." if at else "", fields_of(cls), {**cls.presets}
        given = {name: value for name, value in _mapping(raw, at or None).items() if value is not None and value != ""}
        preset = given.pop(PRESET, None) if known else None
        if preset is not None and preset not in known:
            raise Invalid(f"{under}{PRESET}", expected=either(known), got=preset)
        unknown = next((name for name in raw if name not in fields and not (known and name == PRESET)), None)
        if unknown is not None:
            expected = Phrase("one of the fields %(names)s", names=", ".join([*fields, *([PRESET] if known else [])]))
            raise Invalid(under + unknown, expected=expected, got=unknown)
        values = {**known.get(preset or "", {}), **{name: _value(cls, name, given[name], under) for name in given}}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            fault = error.errors()[0]
            raise invalid_of(under + ".".join(map(str, fault["loc"])), fault) from None
        except Invalid as error:  # of fields that do not fit each other
            raise type(error)(f"{under}{error.field}", **error.parts) from None


def asked_usd(description: str) -> Any:
    """The field of a budget that says what may be spent in money."""
    unset = "the setting JOB_BUDGET_USD"
    return asked("Budget, USD", description, None, unset=unset, option="budget", metavar="USD", gt=0)


def asked_tokens(description: str) -> Any:
    """The field of a budget that says how many tokens may be spent."""
    said: dict[str, Any] = {"unset": "none", "option": "budget-tokens", "metavar": "N"}
    return asked("Budget, tokens", description, None, **said, gt=0, le=10**15)


class JobBudget(SpecPart):
    """What the calls of models that a job makes may come to."""

    usd: float | None = asked_usd(
        "When the calls of its models have cost so much no further ones begin, and it stops until it is resumed with"
        " more."
    )
    tokens: int | None = asked_tokens(
        "The same for tokens of prompts and answers together, whatever they cost; what a server does not count is"
        " estimated."
    )

    @property
    def columns(self) -> dict[str, Any]:
        """The budget as the row of a job holds it."""
        return {"budget_usd": self.usd, "budget_tokens": self.tokens}


def asked_budget() -> JobBudget:
    """The field of a spec that says what its job may spend."""
    found: JobBudget = asked("Budget", "Of its calls of models.", JobBudget(), heading="Budget", prefix="budget_")
    return found


class JobSpec(SpecPart):
    """What somebody asks of a job of one kind. A kind's fields may have been others in an earlier version."""

    version: ClassVar[int] = 1
    files: ClassVar[Mapping[str, TextFile]] = {}  # of the fields that name one

    @classmethod
    def of_json(cls, stored: Mapping[str, Any], over: Mapping[str, Any] | None = None) -> Self:
        """The spec that `to_json` wrote, in this version or an earlier one, with the fields of `over` laid over it.

        Raises Invalid for one of a later version, and as `read` does.
        """
        version = stored.get(VERSION, 1)
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            expected = Phrase("a whole number from %(least)s to %(most)s", least=1, most=cls.version)
            raise Invalid(VERSION, expected=expected, got=version)
        if version > cls.version:
            raise Invalid(VERSION, expected=Phrase("at most %(newest)s", newest=cls.version), got=version)
        fields = {name: value for name, value in stored.items() if name != VERSION}
        for before in range(version, cls.version):
            try:
                fields = cls.of_version(before, fields)
            except (AttributeError, KeyError, TypeError, ValueError):
                expected = Phrase("fields as version %(version)s had them", version=before)
                raise Invalid(VERSION, expected=expected, got=Phrase("others")) from None
        for name, value in (over or {}).items():
            part = name in parts_of(cls) or fields_of(cls).get(name, {}).get("widget") == "training"
            within = part and isinstance(fields.get(name), dict)
            fields[name] = {**fields[name], **value} if within else value
        return cls.read(fields)

    @classmethod
    def only_with(cls) -> Mapping[str, tuple[str, Collection[str]]]:
        """Fields that are asked for beside some values of another field alone: by name, that field and the values."""
        return {}

    @classmethod
    def of_version(cls, _before: int, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of an earlier version as the one after it has them."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """The spec as files and rows hold it."""
        return {VERSION: self.version, **self.model_dump(mode="json", exclude_none=True)}


def option_of(name: str, schema: Schema) -> str:
    """The option of a command that takes a field."""
    return "--" + (schema.get("option") or name).replace("_", "-")


def command_words(spec: SpecPart) -> str:
    """The arguments of a command that ask for the same, but for fields that have their defaults."""
    words = []
    for name, schema in fields_of(type(spec)).items():
        value = getattr(spec, name)
        if isinstance(value, SpecPart):
            words.append(command_words(value))
        elif value != schema.get("default") and value not in (None, (), {}):
            option = option_of(name, schema)
            many: Sequence[Any] = value if isinstance(value, tuple) else (value,)
            if isinstance(value, Mapping):
                many = [f"{key}={_word(each)}" for key, each in value.items()]
            plain = [] if schema.get("argument") else [option if value is not False else f"--no-{option[2:]}"]
            given = [] if isinstance(value, bool) else [shlex.quote(str(each)) for each in many]
            words.append(" ".join([*plain, *given]))
    return " ".join(filter(None, words))


def _word(value: Any) -> str:
    """A value of a mapping as an option takes it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_word, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def parts_of(spec: type[SpecPart]) -> Mapping[str, type[SpecPart]]:
    """The settings inside of a spec, by the field that holds them."""
    types = {name: field.annotation for name, field in spec.model_fields.items()}
    return {name: each for name, each in types.items() if isinstance(each, type) and issubclass(each, SpecPart)}


def usual_of(schema: Schema) -> str | None:
    """What stands for a field that is not given, in words; None where it has to be given."""
    usual = schema.get("unset") or schema.get("default")
    if isinstance(usual, list):
        return ", ".join(usual) or "none"
    if isinstance(usual, dict):
        pairs = [f"{name}={usual_of({'default': each})}" for name, each in usual.items() if each is not None]
        return " ".join(pairs) or "none"
    if isinstance(usual, float):
        return f"{usual:g}"
    if isinstance(usual, bool):
        return str(usual).lower()
    return "none" if usual == "" else None if usual is None else str(usual)


def _value(spec: type[SpecPart], name: str, raw: Any, under: str) -> Any:
    schema, field = fields_of(spec)[name], under + name
    if name in (parts := parts_of(spec)):
        return parts[name].read(_mapping(raw, field), field)
    match schema.get("type"):
        case "array":
            return _several(schema, raw, field)
        case "object":
            each, given = schema["additionalProperties"], _mapping(raw, field)
            _check_count(len(given), schema.get("minProperties", 0), schema.get("maxProperties"), field)
            return {**given} if each is True else {key: read_value(each, given[key], field) for key in given}
        case "boolean":
            return _truth(raw, field)
    value = read_value(schema, raw, field)
    if {kind["type"] for kind in kinds_of(schema)} == {"string"} and not isinstance(value, str):
        raise Invalid(field, expected=Phrase("text"), got=raw)
    if isinstance(value, str) and len(value) > (most := schema.get("maxLength", len(value))):
        raise Invalid(field, expected=Phrase("at most %(most)s characters", most=most), got=raw)
    if isinstance(value, str) and "maxLength" in schema and not value.isprintable():  # such as a name
        expected = Phrase("at most %(longest)s characters on one line", longest=schema["maxLength"])
        raise Invalid(field, expected=expected, got=raw)
    return value


def _mapping(raw: Any, field: str | None) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping) or not all(isinstance(name, str) for name in raw):
        raise Invalid(field, expected=Phrase("names with their values"), got=raw)
    return raw


def _several(schema: Schema, raw: Any, field: str) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(each, str) for each in raw):
        raise Invalid(field, expected=Phrase("a list of names"), got=raw)
    _check_count(len(raw), schema.get("minItems", 0), schema.get("maxItems"), field)
    twice = next((name for name, count in Counter(raw).items() if count > 1), None)
    if twice is not None and not schema.get("repeats"):
        raise Invalid(field, expected=Phrase("each model once"), got=twice)
    return tuple(raw)


def _check_count(count: int, least: int, most: int | None, field: str) -> None:
    if most is not None and not least <= count <= most:
        raise Invalid(field, expected=Phrase("%(least)s to %(most)s models", least=least, most=most), got=count)


def _truth(raw: Any, field: str) -> bool:
    if isinstance(raw, bool):
        return raw
    known = {"true": True, "false": False}
    if not isinstance(raw, str) or raw not in known:
        raise Invalid(field, expected=Phrase("true or false"), got=raw)
    return known[raw]
