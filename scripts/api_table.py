"""Writes the table of docs/api.md from the operations of the API: `python -m scripts.api_table`."""

from app.api.openapi import PART
from app.api.operations import KIND, OPERATIONS
from app.core.config import ROOT
from scripts.page_tables import between

PAGE = ROOT / "docs" / "api.md"
MARKS = "<!-- operations: python -m scripts.api_table -->", "<!-- end of operations -->"
_JOBS = "{jobs}"


def table() -> str:
    """A line an operation; those for every kind of job once."""
    lines = ["| address | method | scope | |", "|---|---|---|---|"]
    for each in sorted(OPERATIONS, key=lambda each: each.kinds is not None):
        path = PART.sub(r"{\2}", each.rule.replace(KIND, _JOBS))
        scope = f"`{each.scope}`" if each.scope else "none"
        words = " ".join(part if part.endswith(".") else f"{part}." for part in (each.summary, each.details) if part)
        lines.append(f"| `{path}` | {each.method} | {scope} | {words} |")
    return "\n".join(lines)


def with_table() -> str:
    """The text of the page with its table as it is to be."""
    return between(PAGE.read_text(encoding="utf-8"), MARKS, table())


if __name__ == "__main__":
    PAGE.write_text(with_table(), encoding="utf-8")
