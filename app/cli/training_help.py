"""The training methods and their fields, as `flask train --help` lists them, made from their JSON Schema."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from app.cli.base import Command
from app.core.validation import choices_in
from app.finetuning.backends import all_backends
from app.finetuning.config import JOB_DEFAULTS, LOCAL
from app.jobs.spec import usual_of
from training.methods import all_methods, methods_here


class TrainingCommand(Command):
    """A command that takes fields of methods in `--config`, which its help lists below its options."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the list of fields common to all methods, and one list for each method."""
        for heading, rows in training_fields():
            formatter.write_paragraph()
            formatter.write(f"{click.wrap_text(heading, formatter.width)}\n")
            with formatter.indentation():
                formatter.write_dl(rows)


def training_fields() -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """Headings with fields and their meanings: one for the common fields, one for each method, one for each
    backend's.
    """
    methods = methods_here()
    fields = {name: method.job_fields for name, method in methods.items()}
    common = set.intersection(*(set(each) for each in fields.values()))
    first = next(iter(fields.values()))
    yield "Fields of every method, for --config:", [_row(name, first[name]) for name in first if name in common]
    for name, method in methods.items():
        usual = [
            (field, f"{usual_of(schema)} unless it is given")
            for field, schema in fields[name].items()
            if field in common and schema["default"] != first[field]["default"]
        ]
        own = [_row(field, schema) for field, schema in fields[name].items() if field not in common]
        yield f"{name}: {method.title}. {method.summary}", [*usual, *own]
    for name, backend in all_backends().items():
        for called in all_methods() if name != LOCAL else ():
            if found := backend.fields(called):
                heading = f"{called} with --backend {name} has these fields in place of its own. {backend.summary}"
                yield heading, [_row(field, schema) for field, schema in found.items()]


def _row(name: str, schema: Mapping[str, Any]) -> tuple[str, str]:
    default = JOB_DEFAULTS.get(name, schema["default"])
    shown = usual_of(schema if default is None else {"default": default})
    choices = f" One of {', '.join(words)}." if (words := choices_in(schema)) else ""
    return name, f"{schema['description']}{choices} [{shown}]"
