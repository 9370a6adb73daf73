"""Writes the table of answers that are tested, by server, into docs/models.md: `python -m scripts.answer_tables`."""

from app.core.config import ROOT
from scripts.page_tables import between
from tests.api_answers import SAMPLES, Sample

PAGE = ROOT / "docs" / "models.md"
MARKS = "<!-- answers: python -m scripts.answer_tables -->", "<!-- end of answers -->"


def table() -> str:
    """A row for each answer: its server, what is odd about it, and what is made of it."""
    head = ["| server | answer | outcome | asked again | fault |", "|---|---|---|---|---|"]
    return "\n".join([*head, *map(_row, SAMPLES)])


def _row(sample: Sample) -> str:
    again = "yes" if sample.retried else ""
    parted = ", reasoning parted" if sample.outcome == "move" and sample.reasoning else ""
    return f"| {sample.server} | {sample.kind} | `{sample.outcome}`{parted} | {again} | {sample.fault or ''} |"


def with_table(text: str) -> str:
    """The page with its table as it is to be."""
    return between(text, MARKS, table())


def main() -> None:
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
