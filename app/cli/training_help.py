"""The methods of training and their fields, as `flask train --help` lists them: made from their JSON Schema."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.core.validation import kinds_of, words_of
from app.finetuning.backends import all_backends
from app.finetuning.config import JOB_DEFAULTS, LOCAL
from training.methods import all_methods

_NO_WRAP = "\b\n"  # click's mark of a paragraph whose lines stay as they are


def training_help() -> str:
    """One paragraph a method, and one for the fields that all of them take in `--config`."""
    methods = all_methods()
    fields = {name: method.job_fields for name, method in methods.items()}
    common = set.intersection(*(set(each) for each in fields.values()))
    paragraphs = [_NO_WRAP + "Fields of every method, for --config:"]
    first = next(iter(fields.values()))
    paragraphs[0] += "".join(f"\n{line}" for name in first if name in common for line in _help_lines(name, first[name]))
    for name, method in methods.items():
        lines = [f"{name}: {method.title}. {method.summary}"]
        for field, schema in fields[name].items():
            if field not in common:
                lines += _help_lines(field, schema)
            elif schema["default"] != first[field]["default"]:
                lines.append(f"  {field}={schema['default']:g} unless it is given")
        paragraphs.append(_NO_WRAP + "\n".join(lines))
    for name, backend in all_backends().items():
        for called in methods if name != LOCAL else ():
            if own := backend.fields(called):
                head = f"{called} with --backend {name} has these fields in place of its own. {backend.summary}"
                own_lines = [line for field, schema in own.items() for line in _help_lines(field, schema)]
                paragraphs.append(_NO_WRAP + "\n".join([head, *own_lines]))
    return "\n\n".join(paragraphs)


def _help_lines(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    default = JOB_DEFAULTS.get(name, schema["default"])
    shown = schema["unset"] if default is None else f"{default:g}" if isinstance(default, float) else default
    choices = f" One of {', '.join(words)}." if (words := words_of(schema)) and len(kinds_of(schema)) == 1 else ""
    yield f"  {name:<15}{schema['description']}{choices} [{shown}]"
