"""The options of a command that asks for a job, made from the spec of its kind."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from app.core.errors import Invalid
from app.jobs.spec import VERSION, JobSpec, fields_of
from app.studies.yaml_reader import read_yaml

S = TypeVar("S", bound=JobSpec)


def spec_options(spec: type[S]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command an option for each field of a spec, and `--spec FILE` for all of them; it gets the spec as `spec`.

    What is given beside a file is laid over it. Raises Invalid, when the command runs, for what is no such spec.
    """
    fields = fields_of(spec)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(spec_file: Path | None, **given: Any) -> Any:
            asked = {name: given.pop(name) for name in fields}
            return function(spec=_spec_of(spec, spec_file, asked), **given)

        command: Callable[..., Any] = click.option(
            "--spec", "spec_file", type=Path, metavar="FILE", help="All of it from a file, YAML or JSON."
        )(call)
        for name in reversed([*fields]):
            command = _parameter(name, fields[name])(command)
        return command

    return decorate


def _parameter(name: str, field: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Numbers stay text, to be refused in the words that a form has for them."""
    if field["argument"]:
        return click.argument(name, metavar=field["metavar"], required=False)
    usual = field["unset"] or field.get("default")
    shown = "" if usual is None else f" [default: {usual}]"
    text = f"{field['title']}. {field['description']}{shown}"
    option = "--" + (field["option"] or name).replace("_", "-")
    return click.option(option, name, metavar=field["metavar"], help=text)


def _spec_of(spec: type[S], file: Path | None, given: dict[str, Any]) -> S:
    """The spec of a file, with what was given beside it laid over. Raises Invalid, with the line of the file."""
    over = {name: value for name, value in given.items() if value is not None}
    if file is None:
        return spec.read(over)
    document = read_yaml(file)
    try:
        return spec.of_json({VERSION: spec.version, **document.value, **over})
    except Invalid as error:
        if error.field in document.value and error.field not in over:
            line = document.line((error.field,))
            raise error.at(f"{line.source}:{line.number}") from None
        raise
