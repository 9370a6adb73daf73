"""Documents read as pydantic models: pydantic's errors are reported with file, line and key."""

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from app.core.documents import Document, dotted
from app.core.errors import Invalid, Verbatim, either, shown
from app.core.validation import KeyPath

M = TypeVar("M", bound=BaseModel)
ExpectedForm = Callable[[ErrorDetails], str]  # what was wanted of a value of the right type, after “expected”


def read_model(
    kind: type[M], document: Document, expected_form: ExpectedForm, not_yet: Mapping[KeyPath, str] | None = None
) -> M:
    """The mapping of a document as a model. Raises Invalid for the first fault, with its line.

    `not_yet` has the expectation to report for keys that people might take for known ones.
    """
    try:
        return kind.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        raise _first_fault(error.errors(), kind, document, expected_form, not_yet or {}) from None


def _first_fault(
    errors: list[ErrorDetails],
    kind: type[BaseModel],
    document: Document,
    expected_form: ExpectedForm,
    not_yet: Mapping[KeyPath, str],
) -> Invalid:
    """The first fault in the file. An unknown key takes precedence, because it says more than a missing one."""
    # A list with an invalid item is also reported as too short.
    whole = [
        each for each in errors if each["type"] != "too_short" or each["ctx"]["actual_length"] == len(each["input"])
    ]
    paths = [_path_of_error(each, document.value) for each in whole]
    # If a part of a value is wrong, its mismatch with a union's other kinds is irrelevant.
    around = {path[:depth] for path in paths for depth in range(len(path))}
    found = [
        (path, each)
        for path, each in zip(paths, whole, strict=True)
        if not each["type"].endswith("_type") or path not in around
    ]

    def order(fault: tuple[KeyPath, ErrorDetails]) -> tuple[bool, bool, int]:
        """Unknown keys first, then the file itself before the file that it extends, then by line."""
        source, number = document.line(fault[0])
        return fault[1]["type"] != "extra_forbidden", source != document.source, number

    path, first = min(found, key=order)
    if first["type"] == "extra_forbidden" and path in not_yet:
        return document.invalid(path, not_yet[path], _got(first))
    kinds = dict.fromkeys(_expected(each, kind, path, expected_form) for other, each in found if other == path)
    if "a number" in kinds:
        kinds.pop("a whole number", None)
    return document.invalid(path, str(either(kinds)), _got(first))


def _path_of_error(error: ErrorDetails, value: Any) -> KeyPath:
    """The keys of an error's location that are in the file, without members of unions; a missing key stays."""
    path: list[str | int] = []
    loc: KeyPath = error["loc"]
    for at, part in enumerate(loc):
        if isinstance(value, list) and isinstance(part, int):
            path.append(part)
            value = value[part] if part < len(value) else None
        elif isinstance(value, dict) and part in value:
            path.append(part)
            value = value[part]
        elif error["type"] == "missing" and at == len(loc) - 1:
            path.append(part)
    return tuple(path)


def _expected(error: ErrorDetails, kind: type[BaseModel], path: KeyPath, expected_form: ExpectedForm) -> str:
    if error["type"] == "extra_forbidden":
        known = _keys(kind, path[:-1])
        near = get_close_matches(str(path[-1]), known, 1)
        return near[0] if near else f"one of {', '.join(known)}"
    if error["type"] == "missing":
        return "a value"
    words = {
        "string_type": "text (in quotes where it looks like a number, a date, yes or no)",
        "int_type": "a whole number", "float_type": "a number", "bool_type": "true or false",
        "tuple_type": "a list", "list_type": "a list", "dict_type": "keys with values",
        "model_type": "keys with values", "model_attributes_type": "keys with values",
    }  # fmt: skip
    if error["type"] in words:
        return words[error["type"]]
    return expected_form(error)


def _keys(kind: Any, path: KeyPath) -> list[str]:
    """The keys allowed at a path."""
    for part in path:
        if isinstance(part, int):
            continue
        fields = getattr(kind, "model_fields", {})
        field = next((each for name, each in fields.items() if part in (name, each.alias)), None)
        kind = _model_in(field.annotation) if field is not None else kind
    fields = getattr(kind, "model_fields", {})
    return [each.alias or name for name, each in fields.items()]


def _model_in(annotation: Any) -> Any:
    """The model inside a type, as in `tuple[Model, ...]` or `Model | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in getattr(annotation, "__args__", ()) if (found := _model_in(each))), None)


def _got(error: ErrorDetails) -> object:
    if error["type"] == "missing":
        return Verbatim("none")
    if error["type"] == "extra_forbidden":
        return Verbatim(dotted((str(error["loc"][-1]),)))
    if said := error.get("ctx", {}).get("got"):  # from our own check of one among many
        return Verbatim(said)
    value = error["input"]
    return Verbatim("keys with values") if isinstance(value, dict) else Verbatim(shown(value))
