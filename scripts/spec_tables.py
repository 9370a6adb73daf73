"""Writes the tables of docs/jobs.md from the specs of jobs: `python -m scripts.spec_tables`."""

import re
from collections.abc import Iterator
from inspect import getdoc

from app.core.config import ROOT
from app.core.validation import choices_in
from app.jobs.spec import PRESET, JobSpec, SpecPart, fields_of, parts_of, usual_of
from scripts.page_tables import between
from scripts.translations import job_specs

PAGE = ROOT / "docs" / "jobs.md"
MARKS = "<!-- fields: python -m scripts.spec_tables -->", "<!-- end of fields -->"


def tables() -> str:
    """A section for each kind of jobs that has a spec."""
    return "\n\n".join(f"## {_name(spec)}\n\n{getdoc(spec)}\n\n{table(spec)}" for spec in job_specs())


def _name(spec: type[JobSpec]) -> str:
    """What a kind is called: `AssessmentSpec` is of assessments."""
    return re.sub("(?<=[a-z])[A-Z]", lambda found: f" {found[0].lower()}", spec.__name__.removesuffix("Spec"))


def table(spec: type[SpecPart]) -> str:
    """The fields of a spec, each with its default and what it means."""
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *_rows(spec, "")])


def _rows(spec: type[SpecPart], under: str) -> Iterator[str]:
    parts = parts_of(spec)
    if spec.presets and not under:
        known = ", ".join(f"`{each}`" for each in spec.presets)
        yield f"| `{PRESET}` | none | Published settings: one of {known}, over which the others are laid. |"
    for name, schema in fields_of(spec).items():
        if (part := parts.get(name)) is not None:
            known = ", ".join(f"`{each}`" for each in part.presets)
            words = f"{schema['title']}: one of {known}, over which the others are laid."
            if part.presets:
                yield f"| `{under}{name}.{PRESET}` | none | {words} |"
            yield from _rows(part, f"{under}{name}.")
            continue
        if PRESET in schema:
            words = f"{schema['title']}, by name: published settings, over which the others are laid."
            yield f"| `{under}{name}.{PRESET}` | none | {words} |"
        shown = usual_of(schema) or "required"
        words = f" One of {', '.join(f'`{word}`' for word in choices_in(schema))}." if choices_in(schema) else ""
        yield f"| `{under}{name}` | {shown} | {schema['title']}: {schema['description']}{words} |"


def with_tables(text: str) -> str:
    """The page with its tables as they are to be."""
    return between(text, MARKS, tables())


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
