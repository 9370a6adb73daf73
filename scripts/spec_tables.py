"""Writes the tables of docs/jobs.md from the specs of jobs, and those of docs/recipes.md from those of other steps:
`python -m scripts.spec_tables`.
"""

import re
from collections.abc import Iterable, Iterator
from inspect import getdoc
from pathlib import Path

from app.core.config import ROOT
from app.core.validation import choices_in, limits_in
from app.jobs.spec import PRESET, JobSpec, SpecPart, fields_of, parts_of, usual_of
from app.recipes.operations import BestResponsesSpec, CompareSpec, ComparisonsSpec, EvaluateSpec
from scripts.page_tables import between
from scripts.translations import job_specs

PAGE, RECIPES = ROOT / "docs" / "jobs.md", ROOT / "docs" / "recipes.md"
MARKS = "<!-- fields: python -m scripts.spec_tables -->", "<!-- end of fields -->"


def tables(specs: Iterable[type[JobSpec]]) -> str:
    """A section for each of these specs."""
    return "\n\n".join(f"## {_name(spec)}\n\n{getdoc(spec)}\n\n{table(spec)}" for spec in specs)


def specs_of_pages() -> dict[Path, list[type[JobSpec]]]:
    """The specs whose tables a page has."""
    return {PAGE: job_specs(), RECIPES: [EvaluateSpec, BestResponsesSpec, ComparisonsSpec, CompareSpec]}


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
        shown = usual_of(schema) or ("required" if spec.model_fields[name].is_required() else "none")
        words = f" One of {', '.join(f'`{word}`' for word in choices_in(schema))}." if choices_in(schema) else ""
        if limits := limits_in(schema):
            words += f" {limits[0].upper()}{limits[1:]}."
        yield f"| `{under}{name}` | {shown} | {schema['title']}: {schema['description']}{words} |"


def with_tables(page: Path) -> str:
    """The text of a page with its tables as they are to be."""
    return between(page.read_text(encoding="utf-8"), MARKS, tables(specs_of_pages()[page]))


def main() -> None:
    for page in specs_of_pages():
        page.write_text(with_tables(page), encoding="utf-8")


if __name__ == "__main__":
    main()
