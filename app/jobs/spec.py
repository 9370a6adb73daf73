"""The spec of a job, described once: each field with its type, limits, default, title and help. Pure.

The `spec.py` of a kind has a JobSpec. From it come the options of its command (app/cli/spec_options.py), its form
(app/web/admin/spec_form.py), the checks of both, its JSON, its JSON Schema and its table in docs/jobs.md.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core.errors import Invalid, Phrase
from app.core.validation import LARGEST_SEED, Schema, choice_of, invalid_of, kinds_of, read_value
from app.core.validation import fields_of as fields_of

VERSION = "version"  # the key of a stored spec's version
SHIPPED = "shipped"  # in place of a file: the file that ships with Parlor
PRESET = "preset"  # the key of a part's preset, which its fields override
_LIMITS = ("ge", "gt", "le", "lt", "min_length", "max_length", "default_factory")  # field arguments passed to pydantic


class TextFile(NamedTuple):
    """How a field's file is read: `parse` takes its content and its name in errors.

    `shipped` is read if no file is given, if Parlor ships one. `accept` is for the file dialog of a form. `in_process`:
    `parse` starts a process and waits for it, which with an event loop only the loop's own thread may do. `with_files`:
    for a file that names others, adds their texts, by name, to the result of `parse`.
    """

    parse: Callable[[bytes, str], Any]
    shipped: Path | None
    accept: str
    in_process: bool = False
    with_files: Callable[[Any, Mapping[str, str]], Any] | None = None


def spec_field(title: str, text: str, default: Any = ..., **said: Any) -> Any:
    """A field of a spec: `title` is its heading in forms, `text` explains it there and on the command line.

    Further arguments, beside pydantic's limits and `default_factory`:
    unset: what an empty field means. labels: display names of the words that it may be (an empty one, too),
        or of a part's presets.
    empty: what an empty form field means, if that is the word `none` and not the default.
    note: an addition on the command line. hint: for material, an explanation in forms.
    metavar, option, argument: its placeholder on the command line, its option if named differently, whether
        it has none. A part with an option takes `K=V`, one without has an option for each field. preset: the
        option of its preset.
    widget: its input in a form if its type does not imply it: model, models, shares, dataset, file,
        training, base, or registry for one of the `methods` of training or of the `backends` that run it, as
        `registry` says; names (several in one box), radio, day, known (one of the `of`: games, models, …) or
        several (some of these), lines (name = value each), written: a file whose text can be edited in the
        form, or upload: a file limited to the MB in the setting `most`, which the form reads itself;
        game, and for the game in the field `game`: seats (two models, or all of a cross-play), options (its
        settings), material.
        use: of models, a key of `app.registry.named.USES`. suggested: the model that a form preselects, such
        as the scripted observer or the first that can be trained.
        method: for a training, the method that has these fields; `by`: the field that holds its backend,
        which may have others; `chosen`: the field that holds the method, if it is one of those whose usual
        field values are in `usual`. boxes: the fields, then, that have a box of their own.
        share: for shares, the share of a model that is given none.
        kind: of the datasets to choose from. backend: of the models to choose from.
    heading: of the form's section that starts with it. prefix: of the form names of a part's or a training's
        fields.
        fills: whether presets fill in the form. without: fields of a part that forms leave out. folded: the
        label under which its fields except the `first` are collapsed.
        unless: the field and the value that hide it.
    beside: material, for a field that a form has if the game has some. repeats: whether a list may name one
        twice.
    once: whether a form that is prefilled from an earlier job leaves it empty.
    """
    limits = {name: said.pop(name) for name in _LIMITS if name in said}
    if "default_factory" not in limits:
        limits["default"] = default
    return Field(title=title, description=text, json_schema_extra=said, **limits)


class SpecPart(BaseModel):
    """A group of fields: those of a spec, or settings inside of one, which may have presets by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def read(cls, raw: Mapping[str, Any], at: str = "") -> Self:
        """Values from a form, a command or a file; numbers may be given as text, and an empty text or null stands for
        the default. `at` is the field that it is a part of. Raises Invalid, naming the field.
        """
        under, fields, known = f"{at}." if at else "", fields_of(cls), {**cls.presets}
        given = {name: value for name, value in _mapping(raw, at or None).items() if value is not None and value != ""}
        preset = given.pop(PRESET, None) if known else None
        base = {} if preset is None else choice_of(known, preset, under + PRESET)
        unknown = next((name for name in raw if name not in fields and not (known and name == PRESET)), None)
        if unknown is not None:
            expected = Phrase("one of the fields %(names)s", names=", ".join([*fields, *([PRESET] if known else [])]))
            raise Invalid(under + unknown, expected=expected, got=unknown)
        values = {
            **base,
            **{name: _read_field_value(cls, name, given[name], under) for name in given},
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            fault = error.errors()[0]
            raise invalid_of(under + ".".join(map(str, fault["loc"])), fault) from None
        except Invalid as error:  # for fields that contradict each other
            raise error.of(f"{under}{error.field}") from None


def usd_field(description: str) -> Any:
    """The budget field for the limit in money."""
    unset = "the setting JOB_BUDGET_USD"
    return spec_field("Budget, USD", description, None, unset=unset, option="budget", metavar="USD", gt=0)


def tokens_field(description: str) -> Any:
    """The budget field for the limit in tokens."""
    said: dict[str, Any] = {"unset": "none", "option": "budget-tokens", "metavar": "N"}
    return spec_field("Budget, tokens", description, None, **said, gt=0, le=10**15)


class JobBudget(SpecPart):
    """The limits on a job's model calls."""

    usd: float | None = usd_field(
        "Once its model calls have cost this much, no more begin, and it stops until it is resumed with a higher "
        "budget."
    )
    tokens: int | None = tokens_field(
        "The same for prompt and answer tokens together, regardless of cost; tokens a server does not count are "
        "estimated."
    )

    @property
    def columns(self) -> dict[str, Any]:
        """The budget as columns of a job's row."""
        return {"budget_usd": self.usd, "budget_tokens": self.tokens}


def budget_field() -> JobBudget:
    """The field of a spec that holds its job's budget."""
    found: JobBudget = spec_field("Budget", "For its model calls.", JobBudget(), heading="Budget", prefix="budget_")
    return found


class JobSpec(SpecPart):
    """The spec of a job of one kind. Earlier versions of a kind may have had other fields."""

    version: ClassVar[int] = 1
    files: ClassVar[Mapping[str, TextFile]] = {}  # the text file of each field that names one

    @classmethod
    def of_json(cls, stored: Mapping[str, Any], over: Mapping[str, Any] | None = None) -> Self:
        """The spec that `to_json` wrote, in this version or an earlier one, overridden by the fields of `over`.

        Raises Invalid for a later version, and as `read` does.
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
        fields = dict(cls.in_place(fields))
        for name, value in cls.in_place(over or {}).items():
            part = name in parts_of(cls) or fields_of(cls).get(name, {}).get("widget") == "training"
            within = part and isinstance(fields.get(name), dict)
            fields[name] = {**fields[name], **value} if within else value
        return cls.read(fields)

    @classmethod
    def read(cls, raw: Mapping[str, Any], at: str = "") -> Self:
        """As for every part, with the fields in place."""
        return super().read(cls.in_place(raw), at)

    @classmethod
    def in_place(cls, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """The given fields, each where the spec has it, if it may be given elsewhere, too. Raises Invalid."""
        return raw

    @classmethod
    def only_with(cls) -> Mapping[str, tuple[str, Collection[str]]]:
        """Fields that apply only with some values of another field: by name, that field and the values."""
        return {}

    @classmethod
    def of_version(cls, _before: int, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of an earlier version, converted to the version after it."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """The spec as stored in files and rows."""
        return {VERSION: self.version, **self.model_dump(mode="json", exclude_none=True)}


def mapping_of_pairs(raw: Any) -> Any:
    """Pairs of a name and a value, which earlier versions had, as a mapping; anything else as it is."""
    pairs = isinstance(raw, list) and all(isinstance(each, list) and len(each) == 2 for each in raw)
    return {str(name): value for name, value in raw} if pairs else raw


def option_of(name: str, schema: Schema) -> str:
    """The command-line option of a field."""
    return "--" + (schema.get("option") or name).replace("_", "-")


def command_words(spec: SpecPart) -> str:
    """The command-line arguments that request the same, without fields that have their defaults."""
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
    """A value of a mapping, written as an option accepts it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_word, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def parts_of(spec: type[SpecPart]) -> Mapping[str, type[SpecPart]]:
    """The settings inside of a spec, by the field that holds them."""
    types = {name: field.annotation for name, field in spec.model_fields.items()}
    return {name: each for name, each in types.items() if isinstance(each, type) and issubclass(each, SpecPart)}


def usual_of(schema: Schema) -> str | None:
    """The default of a field, in words; None if the field is required."""
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


def _read_field_value(spec: type[SpecPart], name: str, raw: Any, under: str) -> Any:
    schema, field = fields_of(spec)[name], under + name
    if name in (parts := parts_of(spec)):
        return parts[name].read(_mapping(raw, field), field)
    match schema.get("type"):
        case "array":
            return _several(schema, raw, field)
        case "object":
            each, given = schema["additionalProperties"], _mapping(raw, field)
            _check_count(schema, len(given), schema.get("minProperties", 0), schema.get("maxProperties"), field)
            return {**given} if each is True else {key: read_value(each, given[key], field) for key in given}
        case "boolean":
            return _truth(raw, field)
    value = read_value(schema, raw, field)
    only_text = {kind["type"] for kind in kinds_of(schema)} == {"string"}
    return _one_line(schema, _as_text(value), field) if only_text else value


def _as_text(raw: Any) -> Any:
    """The text of a whole number, which in a file is how a thing with such a name or number is named."""
    return str(raw) if isinstance(raw, int) and not isinstance(raw, bool) and abs(raw) <= LARGEST_SEED else raw


def _one_line(schema: Schema, raw: Any, field: str) -> str:
    """Text on one line: what is longer is in files, or among the values of a mapping. Raises Invalid."""
    most = schema.get("maxLength")
    if not isinstance(raw, str):
        raise Invalid(field, expected=Phrase("text"), got=raw)
    if most is not None and len(raw) > most:
        raise Invalid(field, expected=Phrase("at most %(most)s characters", most=most), got=raw)
    if not raw.isprintable():
        on_line = Phrase("at most %(longest)s characters on one line", longest=most)
        raise Invalid(field, expected=Phrase("text on one line") if most is None else on_line, got=raw)
    return raw


def _mapping(raw: Any, field: str | None) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping) or not all(isinstance(name, str) and name.isprintable() for name in raw):
        raise Invalid(field, expected=Phrase("names with their values"), got=raw)
    return raw


def _several(schema: Schema, raw: Any, field: str) -> tuple[str, ...]:
    names = [*map(_as_text, raw)] if isinstance(raw, list | tuple) else raw
    if not isinstance(names, list) or not all(isinstance(each, str) and each.isprintable() for each in names):
        raise Invalid(field, expected=Phrase("a list of names"), got=raw)
    _check_count(schema, len(names), schema.get("minItems", 0), schema.get("maxItems"), field)
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None and not schema.get("repeats"):
        raise Invalid(field, expected=Phrase("each model once"), got=twice)
    return tuple(names)


def _check_count(schema: Schema, count: int, least: int, most: int | None, field: str) -> None:
    if most is None or least <= count <= most:
        return
    expected = Phrase("%(least)s to %(most)s entries", least=least, most=most)
    if schema.get("widget") in ("models", "seats", "shares"):
        expected = Phrase("%(least)s to %(most)s models", least=least, most=most)
    raise Invalid(field, expected=expected, got=count)


def _truth(raw: Any, field: str) -> bool:
    if isinstance(raw, bool):
        return raw
    known = {"true": True, "false": False}
    if not isinstance(raw, str) or raw not in known:
        raise Invalid(field, expected=Phrase("true or false"), got=raw)
    return known[raw]
