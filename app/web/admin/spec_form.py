"""The fields of a form that asks for a job, made from the spec of its kind: their definition, content and meaning."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from pathlib import PureWindowsPath
from types import MappingProxyType
from typing import Any, NamedTuple

from flask import request
from flask_babel import gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, FieldError, Invalid, Phrase, refusals_of
from app.core.validation import Schema, choices_in, kinds_of
from app.finetuning.backends import backend_names
from app.finetuning.config import Fields, find_method
from app.games import find_game
from app.games.base import JSON
from app.jobs.spec import PRESET, SHIPPED, JobSpec, SpecPart, fields_of, parts_of
from app.models import LanguageModel
from app.registry import list_models, round_models
from app.registry.named import LEARNER, PLAYER, SCORED, TRAINED, USES
from app.web.admin.game_fields import GAME, GAME_WIDGETS, MATERIAL, hidden_material, of_game, read_material
from app.web.admin.spec_choices import Choices, choices_of, word_label
from app.web.admin.training_fields import (
    TrainingField,
    boxes,
    chosen_boxes,
    fields_in_lines,
    further_fields,
    read_lines,
    training_field,
    training_fields,
    with_further_fields,
)
from app.web.admin.uploaded_texts import AGAIN, UPLOAD, read_uploads, uploaded_text
from app.web.forms import RefusedField, one_of
from app.web.labels import in_code
from app.web.seats import settings

Form = Mapping[str, Any]
NONE = "none"  # what an empty field stands for, as defined by the spec
_SHARE = "share "  # precedes a model's name in the name of its share's field


class SpecField(NamedTuple):
    """A field of a form. `path` is its name in the spec, after the name of the part that contains it."""

    name: str
    path: tuple[str, ...]
    widget: str
    schema: Schema
    only: tuple[str, Collection[str]] | None = None  # shown only while this field has one of these values
    of: Fields = MappingProxyType({})  # for a training's field: its schema by method
    folded: str = ""  # the heading under which it is folded away


class ShownField(NamedTuple):
    """A field in the language of the page, for the fragment of its widget (templates/admin/spec-fields.html).

    `choices` are values with their labels, and for a registry with a hint. `more` is what only some widgets have: the
    fields of a training, the accepted kinds of files, groups of datasets, presets of methods.
    """

    name: str
    widget: str
    title: str
    help: str
    unset: str
    inputmode: str = "text"
    choices: Choices = ()
    unless: str = ""
    only: str = ""
    more: Any = None


class FieldGroup(NamedTuple):
    """Consecutive fields of one layout. `empty` says that the registry has no model for them."""

    layout: str
    fields: list[ShownField]
    empty: str
    lost: list[str]  # the form's models that can no longer be chosen
    folded: str


# ---- Widgets: how a value is sent, read for the spec, and shown -----------------------


class _Widget(NamedTuple):
    sent: Callable[[str], Any]
    read: Callable[[str, Any], Any]
    shown: Callable[[Any], Any]
    layout: str = "fields"


def _sent_text(name: str) -> str:
    return request.form.get(name, "").strip()


def _sent_list(name: str) -> list[str]:
    return request.form.getlist(name)


def _sent_file_name(name: str) -> str:
    """The name of an uploaded file without its folder, which some browsers send as well."""
    file = request.files.get(name)
    return PureWindowsPath(file.filename or "").name[:200] if file else ""


def _sent_shares(_name: str) -> dict[str, str]:
    given = request.form.items()
    return {name.removeprefix(_SHARE): text.strip() for name, text in given if name.startswith(_SHARE)}


def _in_line(value: Any) -> str:
    """A value as it is written in a line: several values are separated by commas."""
    if isinstance(value, list):
        return ", ".join(map(_in_line, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value_as_text(value: Any) -> str:
    """A value as people write it: a number without an exponent."""
    return "" if value is None else f"{Decimal(f'{value:g}'):f}" if isinstance(value, float) else str(value)


_LINES = _Widget(
    _sent_text,
    lambda name, text: read_lines(text, name, ()),
    lambda value: "\n".join(f"{name} = {_in_line(each)}" for name, each in sorted(value.items())),
    "training",
)
_TEXT = _Widget(_sent_text, lambda _name, text: text, _value_as_text)
ONE_TEXT = ("text", "number", "choice", "radio", "known", "day", "model", "dataset", "base", "box", "registry", GAME)
_WIDGETS: Mapping[str, _Widget] = {
    **dict.fromkeys(ONE_TEXT, _TEXT),
    GAME: _TEXT._replace(layout="hidden"),
    PRESET: _TEXT,
    **dict.fromkeys(("registry", "radio"), _TEXT._replace(layout="radios")),
    "names": _Widget(_sent_text, lambda _name, text: text.replace(",", " ").split(), ", ".join),
    "upload": _Widget(_sent_file_name, lambda _name, text: text, _value_as_text, "upload"),
    "file": _TEXT._replace(layout="file"),
    "written": _TEXT._replace(layout="written"),
    "tick": _Widget(_sent_text, lambda _name, text: bool(text), lambda value: "1" if value else "", "choices"),
    "models": _Widget(_sent_list, lambda _name, given: given, list, "members"),
    "several": _Widget(_sent_list, lambda _name, given: given, list, "several"),
    "shares": _Widget(
        _sent_shares,
        lambda _name, given: {model: share for model, share in given.items() if share},
        lambda value: {model: _value_as_text(share) for model, share in value.items()},
        "members",
    ),
    "training": _LINES,
    "lines": _LINES._replace(layout="lines"),
}


_EMPTY: Mapping[str, Any] = {"models": (), "several": (), "shares": {}, "training": {}, "lines": {}}


def _widget_of(schema: Schema) -> str:
    if "widget" in schema:
        return str(schema["widget"])
    if schema.get("type") == "boolean":
        return "tick"
    if choices_in(schema):
        return "choice"
    return "number" if any(kind["type"] in ("integer", "number") for kind in kinds_of(schema)) else "text"


def leaves(spec: type[SpecPart]) -> Iterator[SpecField]:
    """The form fields for a spec, including those of its parts, in order: ticks come last in a part."""
    parts, only = parts_of(spec), spec.only_with() if issubclass(spec, JobSpec) else {}
    for name, schema in fields_of(spec).items():
        if name not in parts:
            widget, beside = _widget_of(schema), only.get(name)
            if widget == "training" and "chosen" in schema:
                for box in chosen_boxes(schema):
                    yield SpecField(box.name, (name, box.field), "box", next(iter(box.of.values())), None, box.of)
            elif widget == "training" and (by := schema.get("by")):
                for box in (each for backend in backend_names() for each in boxes(backend)):
                    first = next(iter(box.of.values()))
                    yield SpecField(box.name, (name, box.field), "box", first, (by, (box.backend,)), box.of)
                beside = (by, with_further_fields())
            yield SpecField(name, (name,), widget, schema, beside)
            continue
        if parts[name].presets and not schema.get("fills"):
            yield SpecField(name, (name, PRESET), PRESET, schema)
        own = {field: of for field, of in fields_of(parts[name]).items() if field not in schema.get("without", ())}
        first = schema.get("first", own)
        for field, of in sorted(own.items(), key=lambda each: (each[0] not in first, _widget_of(each[1]) == "tick")):
            folded = "" if field in first else schema["folded"]
            called, beside = schema.get("prefix", "") + field, only.get(name)
            yield SpecField(called, (name, field), _widget_of(of), of, beside, folded=folded)


def _is_asked(spec: type[SpecPart], field: SpecField, given: Mapping[str, Any]) -> bool:
    """Whether a field is asked for, given the values of the others."""
    if field.only is None:
        return True
    name, values = field.only
    return (given.get(name) or fields_of(spec)[name].get("default") or "") in values


# ---- What a form holds ---------------------------------------------------------------


def typed(spec: type[JobSpec]) -> JSON:
    """The fields as they were sent; an uploaded file is in its text field, and so is sent back with the page."""
    found: JSON = {}
    for each in leaves(spec):
        if (widget := GAME_WIDGETS.get(each.widget)) is not None:
            found |= widget.sent(find_game(found[GAME]))
        else:
            found[each.name] = _WIDGETS[each.widget].sent(each.name)
    for name in spec.files:
        found |= {f"{name}_{part}": request.form.get(f"{name}_{part}", "").strip() for part in ("text", "name")}
    return {**found, **read_uploads(request, [*spec.files])}


def in_address(spec: type[JobSpec]) -> JSON:
    """The values that a form's URL names: texts, and those of parts without presets, filled up with their defaults."""
    found: JSON = {}
    for each in leaves(spec):
        first, last = each.path[0], each.path[-1]
        given: Any = request.args.get(each.name, "") if each.widget in ONE_TEXT else None
        if each.widget == "names":
            given = request.args.getlist(each.schema.get("option", each.name))
        if given and len(each.path) == 1:
            found[first] = given
        elif given and not (part := parts_of(spec)[first]).presets:
            usual = {name: schema.get("default") for name, schema in fields_of(part).items()}
            found[first] = {**found.get(first, usual), last: given}
    return found


def filled_in(
    spec: type[JobSpec], given: Mapping[str, Any], *, files: str = SHIPPED, known: Mapping[str, str] | None = None
) -> JSON:
    """The fields for values of a spec, either initial values or those of an earlier job; others have their defaults.

    `files` says which texts are meant. `known` has the models that fields start with, by what the fields suggest.
    """
    found: JSON = {f"{name}_{part}": "" for name in spec.files for part in ("text", "name")}
    boxed = dict[str, set[str]]()  # in a training: the fields with a box
    for each in leaves(spec):
        first, last = each.path[0], each.path[-1]
        value = None if each.widget == "box" else each.schema.get("default", _EMPTY.get(each.widget))
        if each.widget == "box" and _is_asked(spec, each, given):
            boxed.setdefault(first, set()).add(last)
        if (last == PRESET and len(each.path) > 1) or (each.widget == "box" and last not in boxed.get(first, ())):
            value = ""
        elif given.get(first) is not None:
            value = given[first] if len(each.path) == 1 else given[first].get(last)
            if first in boxed and len(each.path) == 1:
                value = {field: of for field, of in value.items() if field not in boxed[first]}
        elif name := (known or {}).get(each.schema.get("suggested", "")):
            value = name if each.widget == "model" else {name: 1}
        if (widget := GAME_WIDGETS.get(each.widget)) is not None:
            found |= widget.shown(find_game(found[GAME]), value, files == AGAIN)
        elif value == NONE and "empty" in each.schema:
            found[each.name] = ""
        else:
            found[each.name] = files if each.widget in ("file", "written") else _WIDGETS[each.widget].shown(value)
    return found


def values_of(spec: type[JobSpec], form: Form) -> JSON:
    """The values of a form for JobSpec.read, without its files. Raises Invalid."""
    found: JSON = {}
    for each in leaves(spec):
        if not _is_asked(spec, each, form):
            continue
        value: Any = None
        if (widget := GAME_WIDGETS.get(each.widget)) is not None:
            value = widget.read(find_game(form[GAME]), form)
        elif each.widget not in ("file", "written"):
            value = _WIDGETS[each.widget].read(each.name, form[each.name])
            if value == "" and "empty" in each.schema:
                value = NONE
        if len(each.path) > 1:
            part = found.setdefault(each.path[0], {})
            if each.widget != "box" or value:
                part[each.path[1]] = value
        elif (boxed := found.get(each.name)) is not None:
            if twice := next((name for name in value if name in boxed), None):
                raise Invalid(each.name, expected=Phrase("a field that has no box"), got=twice)
            boxed |= value
        else:
            found[each.name] = value
    return found


def files_of(spec: type[JobSpec], form: Form, again: Mapping[str, Any] | None) -> JSON:
    """The content of the texts that a form selects, by field; `again` are those of the job that it is filled in from.

    None if no text ships for a field. Raises Invalid.
    """
    found: JSON = {}
    for name, file in spec.files.items():
        chosen = one_of(name, form, (SHIPPED, UPLOAD) if again is None else (SHIPPED, UPLOAD, AGAIN))
        if again is not None and chosen == AGAIN:
            found[name] = again[name]
        elif chosen == UPLOAD:
            with refusals_of(name):
                text, source = uploaded_text(name, form)
                found[name] = file.parse(text.encode("utf-8", "replace"), source)
        else:
            found[name] = None if file.shipped is None else file.parse(file.shipped.read_bytes(), SHIPPED)
    if asks_for(spec, MATERIAL):
        found[MATERIAL] = read_material(find_game(form[GAME]), form, settings(), again[MATERIAL] if again else None)
    return found


def asks_for(spec: type[JobSpec], widget: str) -> bool:
    """Whether a form has a field with that widget."""
    return any(each.widget == widget for each in leaves(spec))


def takes_files(spec: type[JobSpec]) -> bool:
    """Whether a form can upload files."""
    return bool(spec.files) or asks_for(spec, MATERIAL) or asks_for(spec, "upload")


def refusal(spec: type[JobSpec], error: AppError, form: Form = MappingProxyType({})) -> RefusedField:
    """An error from a lower layer, placed at the form field that it is about and named as that field is there."""
    path = tuple((error.field or "").split("."))
    fields = [each for each in leaves(spec) if _is_asked(spec, each, form)]
    lines = next(
        (each for each in fields if each.widget in ("training", "options") and path[0] == each.name != error.field),
        None,
    )
    if lines is not None and not any(path == each.path for each in fields) and isinstance(error, FieldError):
        return RefusedField(lines.name, error.of(path[-1]))  # for a field given in a line
    found = next((each for each in fields if path in (each.path, (each.name,))), None)
    found = found or next((each for each in fields if path[-1] in (each.path[-1], each.schema.get("option"))), None)
    if found is None:
        return RefusedField(path[0], error)
    if isinstance(error, FieldError) and error.parts["subject"] is None:
        title = found.schema["title"]  # a Phrase that contains a text would be taken for that text
        error = error.of(found.name, subject=Phrase(title))
    return RefusedField(found.name, error)


# ---- What a form shows -----------------------------------------------------------------


def sections(session: Session, spec: type[JobSpec], form: Form) -> list[tuple[str, list[FieldGroup]]]:
    """The sections of a form, each with its heading and its fields in groups, in the language of the page."""
    models = list_models(session, archived=False)
    found: list[tuple[str, list[SpecField]]] = []
    for each in leaves(spec):
        if MATERIAL in (each.widget, each.schema.get("beside")) and find_game(form[GAME]).material is None:
            continue
        heading = fields_of(spec)[each.path[0]].get("heading", "")
        if not found or (heading and heading != found[-1][0]):
            found.append((heading, []))
        found[-1][1].append(each)
    return [
        (gettext(heading) if heading else "", _field_groups(session, spec, form, of, models)) for heading, of in found
    ]


def presets_of(spec: type[JobSpec]) -> tuple[str, str, Sequence[tuple[str, str]]] | None:
    """The part of a spec that presets fill in: its field, the URL parameter that names a preset, and the presets."""
    for name, part in parts_of(spec).items():
        schema = fields_of(spec)[name]
        if schema.get("fills"):
            argument = schema[PRESET].replace("-", "_")
            return name, argument, [(each, word_label(schema, each)) for each in part.presets]
    return None


def _field_groups(
    session: Session, spec: type[JobSpec], form: Form, fields: Sequence[SpecField], models: Sequence[LanguageModel]
) -> list[FieldGroup]:
    groups = []
    for (layout, folded), of in groupby(fields, lambda each: (_layout(each), each.folded)):
        own = list(of)
        use = next((each.schema["use"] for each in own if "use" in each.schema), None)
        known = [row.name for row in _offered_models(session, use, form, models) if use is None or USES[use](row)]
        named = [name for each in own for name in form[each.name]] if layout == "members" else []
        empty = "" if known or use is None else _none_known(use)
        if layout == "seats" and not round_models(session, form[GAME]):
            empty = gettext("No model that is usable in rounds plays this game.")
        shown = [_shown_spec_field(session, spec, each, form, models) for each in own]
        lost = [*dict.fromkeys(name for name in named if name not in known)]
        groups.append(FieldGroup(layout, shown, empty, lost, gettext(folded) if folded else ""))
    return groups


def _offered_models(
    session: Session, use: str | None, form: Form, models: Sequence[LanguageModel]
) -> Sequence[LanguageModel]:
    """The given models, limited to those that play the form's game if the field requires that."""
    return round_models(session, form[GAME]) if use in (LEARNER, PLAYER) else models


def _shown_spec_field(
    session: Session, spec: type[JobSpec], field: SpecField, form: Form, models: Sequence[LanguageModel]
) -> ShownField:
    schema = field.schema
    title, text = schema["title"], schema["description"]  # a call that contains a text would be taken for that text
    said = schema.get("empty") or schema.get("unset", "")
    unset, help_, title, inputmode = gettext(said) if said else "", gettext(text), gettext(title), "text"
    if field.widget in GAME_WIDGETS:
        choices, more = of_game(session, field.widget, form)
        help_ = gettext(hint) if (hint := schema.get("hint")) else ""
    else:
        offered = _offered_models(session, schema.get("use"), form, models)
        choices, more = choices_of(session, field.widget, schema, form[field.name], offered)
    if field.widget == "box":
        _, title, help_, inputmode, _ = training_field(field.path[-1], field.of)
    elif field.widget == "training":
        more = _fields_of_training(schema)
    elif field.widget in ("file", "written"):
        more = spec.files[field.name].accept
    elif field.widget == "upload":
        more = schema["accept"], most_uploaded(schema)
    elif unset and not choices:
        help_ = f"{help_} {gettext('Empty: %(value)s.', value=unset)}"
    types = {kind.get("type") for kind in kinds_of(schema)}
    if field.widget == "number" and "string" not in types:
        inputmode = "numeric" if types == {"integer"} else "decimal"
    only = "" if field.only is None else f"{field.only[0]}={'|'.join(field.only[1])}"
    unless = hidden_material(form) if schema.get("beside") == MATERIAL else schema.get("unless", "")
    return ShownField(field.name, field.widget, title, in_code(help_), unset, inputmode, choices, unless, only, more)


def most_uploaded(schema: Schema) -> int:
    """The maximum size in bytes of the file of a field."""
    return int(getattr(settings(), schema["most"]) * 1e6)


def _fields_of_training(schema: Schema) -> tuple[str, Mapping[str, TrainingField]]:
    """The field that holds a training's method, if any, and the fields that can be given in its lines."""
    if method := schema.get("method"):
        return "", training_fields({method: find_method(method).job_fields})
    return (schema["chosen"], fields_in_lines(schema)) if "chosen" in schema else ("method", further_fields())


def _layout(field: SpecField) -> str:
    return field.widget if field.widget in GAME_WIDGETS else _WIDGETS[field.widget].layout


def _none_known(use: str) -> str:
    found: str = gettext("No model answers chats. Register one, such as a model behind an API.")
    if use == TRAINED:
        found = gettext("No model here can be trained and answers chats. Register a local checkpoint, or train one.")
    if use == LEARNER:
        found = gettext(
            "No local model that is usable in rounds plays this game. Only a local model has weights to train: make one"
            " from a dataset, or add a checkpoint with %(command)s.",
            command="flask model add-local",
        )
    if use == SCORED:
        found = gettext("No model can be scored. Register a local checkpoint, or a model behind an API.")
    return found
