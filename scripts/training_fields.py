"""Writes the tables of fields in docs/training.md from methods and backends: `python -m scripts.training_fields`."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.core.config import ROOT
from app.finetuning.openai.fields import OpenAIFields
from app.finetuning.tinker import fields as tinker
from app.finetuning.together.fields import DpoFields
from scripts.page_tables import between
from training.methods import methods_here
from training.methods.base import HERE_ONLY, Config, FromCheckpoint, fields_of

PAGE = ROOT / "docs" / "training.md"
MARKS = "<!-- fields: python -m scripts.training_fields -->", "<!-- end of fields -->"


def tables() -> str:
    """The fields of every method, then those that a method adds or gives another default."""
    common = Config.model_json_schema()["properties"]
    parts = ["Every method takes these:\n\n" + _table(common)]
    base = FromCheckpoint.model_json_schema()["properties"]
    going_on = [f"`{name}`" for name, method in methods_here().items() if method.goes_on_from_base]
    own = {name: schema for name, schema in base.items() if name not in common}
    parts.append(f"Methods that go on from a checkpoint ({', '.join(going_on)}) take these, too:\n\n{_table(own)}")
    for name, method in methods_here().items():
        known = base if method.goes_on_from_base else common
        own = {field: schema for field, schema in method.fields.items() if schema != known.get(field)}
        if own:
            parts.append(f"`{name}` has fields and defaults of its own:\n\n{_table(own)}")
    parts.append(f"A job with `--backend openai` takes these, and no others:\n\n{_table(fields_of(OpenAIFields))}")
    parts.append(
        "A job with `--backend together` takes these, and no others, `dpo_beta` with `dpo` alone:\n\n"
        + _table(fields_of(DpoFields))
    )
    own = {name: schema for name, schema in tinker.fields_of("sft").items() if schema != base.get(name)}
    without = ", ".join(f"`{name}`" for name in HERE_ONLY)
    parts.append(
        f"A job with `--backend tinker` takes those of its method but for {without}. These are others there:\n\n"
        + _table(own)
    )
    return "\n\n".join(parts)


def _table(fields: Mapping[str, Mapping[str, Any]]) -> str:
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *_rows(fields)])


def _rows(fields: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, schema in fields.items():
        default = schema.get("default")
        shown = schema.get("unset", "required") if default is None else f"`{str(default).lower()}`"
        words = f" One of {', '.join(f'`{word}`' for word in schema['enum'])}." if "enum" in schema else ""
        yield f"| `{name}` | {shown} | {schema['description']}{words} |"


def with_tables(text: str) -> str:
    """The page with its tables as they are to be."""
    return between(text, MARKS, tables())


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
