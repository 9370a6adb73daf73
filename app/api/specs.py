"""The JSON from which jobs are created: the spec of a kind, with the texts of files instead of their names.

A program runs elsewhere, so a file name on this machine would mean nothing to it, and is not its business.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from app.core.errors import Invalid, either, refusals_of
from app.core.reading_process import RefusedFiles
from app.core.validation import Schema
from app.games import find_game
from app.jobs.creation import creation_of
from app.jobs.kind import JobKind
from app.jobs.spec import PRESET, SHIPPED, VERSION, JobBudget, JobSpec, SpecPart, TextFile, fields_of, parts_of
from app.rounds.lifecycle import Material
from app.rounds.material import ALL, material_of_file, material_of_text, own_material
from app.web.threads import off_loop

S = TypeVar("S", bound=JobSpec)
MATERIAL = "material"  # the widget, and the field
FILES = "files"  # texts of the files named in another
REFERENCE = "#/components/schemas/{model}"  # where OpenAPI has the schemas of parts
TEXT_FILE: Schema = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "description": "What the file holds."},
        "name": {"type": "string", "maxLength": 200, "description": "What errors and pages call it."},
    },
}
_OTHERS: Schema = {
    "type": ["object", "null"],
    "additionalProperties": {"type": "string"},
    "description": "The texts of the files that it names, by these names.",
}
_WITH_OTHERS: Schema = {**TEXT_FILE, "properties": {**TEXT_FILE["properties"], FILES: _OTHERS}}
_KEYWORDS = frozenset((
    "$ref", "additionalProperties", "anyOf", "const", "default", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
    "minProperties", "minimum", "pattern", "properties", "required", "title", "type",
))  # fmt: skip


# ---- Reading -----------------------------------------------------------------------


def read_spec(spec: type[S], body: Mapping[str, Any]) -> tuple[S, dict[str, Any]]:
    """The spec in a body, and the contents of its files, by field. Raises Invalid."""
    named = [*spec.files, *([MATERIAL] if _asks_for_material(spec) else [])]
    found = spec.of_json({VERSION: spec.version, **{name: each for name, each in body.items() if name not in named}})
    files = {name: _read_file(name, file, body.get(name)) for name, file in spec.files.items()}
    if MATERIAL in named:
        material = _read_material(found, body.get(MATERIAL))
        files[MATERIAL] = material
        if material is not None and body.get(MATERIAL) is not None:
            found = found.model_copy(update={MATERIAL: material.source})
    return found, files


def refuse_fields(body: Mapping[str, Any], known: Collection[str]) -> None:
    """Raises Invalid for a body with a field that is not in `known`."""
    if (unknown := next((name for name in body if name not in known), None)) is not None:
        raise Invalid("body", expected=either(known) if known else "no fields", got=unknown)


def _read_file(name: str, file: TextFile, given: Any) -> Any:
    if given is None or (given == SHIPPED and file.shipped is not None):
        return None if file.shipped is None else off_loop(file.parse, file.shipped.read_bytes(), SHIPPED)
    own, others = (given, {}) if file.with_files is None else _with_others(name, given)
    text, called = _text_of(name, own, None if file.shipped is None else SHIPPED)
    content = text.encode(errors="replace")
    try:
        found = file.parse(content, called) if file.in_process else _of_field(name, file.parse, content, called)
    except RefusedFiles as error:
        error.field = name  # which another process does not know
        raise
    return found if file.with_files is None else file.with_files(found, others)


def _with_others(name: str, given: Any) -> tuple[Any, dict[str, str]]:
    """A file as it was sent, and the texts of the files that it names. Raises Invalid."""
    if not isinstance(given, dict):
        return given, {}
    others = given.get(FILES)
    if others is None:
        others = {}
    if not isinstance(others, dict) or not all(isinstance(text, str) for text in others.values()):
        raise Invalid(f"{name}.{FILES}", expected="the texts of files by their names", got=others)
    return {key: value for key, value in given.items() if key != FILES}, others


def _read_material(spec: Any, given: Any) -> Material | None:
    """Read material as the command does: by default the game's own list, if the config leaves the piece open."""
    game = find_game(spec.game)
    kind = game.material
    if kind is None:
        if given is not None:
            raise Invalid(MATERIAL, expected=f"none: {game.name} has no material", got=given)
        return None
    if given is None:
        return None if spec.config.get(kind.fields[0]) is not None else own_material(game)
    if given == ALL and kind.listed():
        return material_of_file(kind, ALL)
    text, called = _text_of(MATERIAL, given, ALL if kind.listed() else None)
    found: Material = _of_field(MATERIAL, material_of_text, kind, text, called)
    return found


def _text_of(name: str, given: Any, word: str | None) -> tuple[str, str]:
    """The text of a file and its name. Raises Invalid for anything else; `word` is what may be sent instead."""
    if isinstance(given, dict) and isinstance(given.get("text"), str) and not given.keys() - {"text", "name"}:
        called = given.get("name", name)
        if isinstance(called, str) and 1 <= len(called) <= 200 and called.isprintable():
            return given["text"], called
    whole = '{"text": …, "name": …}'
    expected = whole if word is None else f"{word} or {whole}"
    raise Invalid(name, expected=expected, got=given)


def _of_field(name: str, read: Any, *arguments: Any) -> Any:
    """What `read` returns; its refusals become errors of the field."""
    with refusals_of(name):
        return off_loop(read, *arguments)


def _asks_for_material(spec: type[SpecPart]) -> bool:
    return fields_of(spec).get(MATERIAL, {}).get("widget") == MATERIAL


# ---- Schemas -----------------------------------------------------------------------


def spec_schema(kind: JobKind[Any]) -> Schema:
    """The schema of the body that creates a job of a kind, with those of its parts in `$defs`."""
    creation = creation_of(kind)
    if creation is None:
        return {}
    spec = creation.spec
    schema = plain_schema(spec.model_json_schema(ref_template=REFERENCE))
    _add_presets(schema, schema, spec)
    for name, file in spec.files.items():
        sent = TEXT_FILE if file.with_files is None else _WITH_OTHERS
        schema["properties"][name] = _file_schema(schema["properties"][name], SHIPPED if file.shipped else None, sent)
    if _asks_for_material(spec):
        schema["properties"][MATERIAL] = _file_schema(schema["properties"][MATERIAL], ALL)
    schema["properties"][VERSION] = {"type": "integer", "minimum": 1, "maximum": spec.version, "default": spec.version}
    return schema


def _add_presets(schema: dict[str, Any], whole: Schema, spec: type[SpecPart]) -> None:
    """Add the field of published settings to the schemas of a spec and of its parts, which read it beside their own."""
    if spec.presets:
        schema["properties"][PRESET] = {
            "title": "Preset",
            "description": "Published settings, which the other fields override.",
            "enum": [*spec.presets],
        }
    for part in parts_of(spec).values():
        _add_presets(whole["$defs"][part.__name__], whole, part)


def budget_schema(kind: JobKind[Any]) -> Schema:
    """The schema of the body that resumes a job of a kind."""
    properties = {"budget": plain_schema(JobBudget.model_json_schema())} if kind.spends else {}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def plain_schema(schema: Schema) -> dict[str, Any]:
    """A schema without the parts that only forms and commands need."""
    found: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            found[name] = {field: plain_schema(of) for field, of in value.items()}
        elif name in _KEYWORDS:
            found[name] = _plain_schema_value(value)
    return found


def _plain_schema_value(value: Any) -> Any:
    if isinstance(value, dict):
        return plain_schema(value)
    return [_plain_schema_value(each) for each in value] if isinstance(value, list) else value


def _file_schema(field: Schema, word: str | None, sent: Schema = TEXT_FILE) -> Schema:
    kinds: list[Schema] = [{"type": "null"}, sent, *([{"const": word}] if word else [])]
    return {"title": field["title"], "description": field["description"], "anyOf": kinds}
