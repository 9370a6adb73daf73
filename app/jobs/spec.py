"""What can be asked of a job, described once: each field with its type, limits, default, title and help. Pure.

The `spec.py` of a kind has a JobSpec. Made from it are the options of its command (app/cli/spec_options.py), its form
(app/web/admin/spec_form.py), what both refuse, its JSON and its JSON Schema.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core.errors import Invalid, Phrase
from app.core.validation import Schema, read_value

VERSION = "version"  # the key of a stored spec's version


def asked(
    title: str,
    text: str,
    default: Any = ...,
    *,
    unset: str = "",
    metavar: str = "TEXT",
    option: str = "",
    argument: bool = False,
    **limits: Any,
) -> Any:
    """A field of a spec.

    `title` heads it in forms, `text` explains it there and on the command line, and `unset` says what an empty field
    stands for. `option` is its name on the command line where that is another, and `argument` puts it there without
    one. `limits` are pydantic's: ge, le, max_length.
    """
    extra: dict[str, Any] = {
        "unset": unset,
        "metavar": metavar,
        "option": option,
        "argument": argument,
    }
    return Field(default, title=title, description=text, json_schema_extra=extra, **limits)


class JobSpec(BaseModel):
    """What somebody asks of a job of one kind. A kind's fields may have been others in an earlier version."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    version: ClassVar[int] = 1

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Self:
        """The spec of what came from a form, a command or a file; numbers may have come as text, and an empty text or
        null stands for the default. Raises Invalid, naming the field.
        """
        fields = fields_of(cls)
        if unknown := next((name for name in raw if name not in fields), None):
            expected = Phrase("one of the fields %(names)s", names=", ".join(fields))
            raise Invalid(unknown, expected=expected, got=unknown)
        given = {name: _value(fields[name], raw[name], name) for name in fields if raw.get(name) not in (None, "")}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise _fault(error) from None

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Self:
        """The spec that `to_json` wrote, in this version or an earlier one. Raises Invalid for one of a later one."""
        version = stored.get(VERSION, 1)
        if not isinstance(version, int) or not 1 <= version <= cls.version:
            raise Invalid(VERSION, expected=Phrase("at most %(newest)s", newest=cls.version), got=version)
        fields = {name: value for name, value in stored.items() if name != VERSION}
        for before in range(version, cls.version):
            fields = cls.of_version(before, fields)
        return cls.read(fields)

    @classmethod
    def of_version(cls, before: int, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of an earlier version as the one after it has them."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """The spec as files and rows hold it."""
        return {VERSION: self.version, **self.model_dump(mode="json", exclude_none=True)}


@cache
def fields_of(spec: type[JobSpec]) -> Mapping[str, Schema]:
    """The JSON Schema of each field, in the order in which they are declared."""
    found: Mapping[str, Schema] = spec.model_json_schema()["properties"]
    return found


def _value(schema: Schema, raw: Any, name: str) -> Any:
    value = read_value(schema, raw, name)
    if schema.get("type") == "string" and not isinstance(value, str):
        raise Invalid(name, expected=Phrase("text"), got=raw)
    return value


def _fault(error: ValidationError) -> Invalid:
    """The first fault, as the rest of Parlor says it."""
    first = error.errors()[0]
    field = str(first["loc"][0])
    if first["type"] == "missing":
        return Invalid(field, expected=Phrase("a value"), got=Phrase("none"))
    expected = str(first["msg"]).removeprefix("Input should be ").lower()
    return Invalid(field, expected=expected, got=first["input"])
