"""docs/studies.md is true of the format."""

import re

from app.core.config import ROOT
from app.studies.design import Part
from app.studies.design_files import PLACEHOLDERS
from app.studies.endings import PROLIFIC, EndingChange

TEXT = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")


def parts(kind=Part):
    """All mappings of the format."""
    for each in kind.__subclasses__():
        yield each
        yield from parts(each)


def test_every_key_is_named():
    words = set(re.findall(r"[a-z_]+", TEXT))
    for part in {*parts(), EndingChange}:
        for name, field in part.model_fields.items():
            assert set((field.alias or name).split()) <= words, (part.__name__, name)


def test_every_placeholder_is_named():
    assert all(f"`{{{name}}}`" in TEXT for name in PLACEHOLDERS)


def test_what_endings_pay_is_as_the_table_says():
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", TEXT, re.MULTILINE)
    told = {name: cells for names, *cells in rows for name in re.findall(r"`(\w+)`", names)}
    assert told == {
        name: [
            ending.base,
            ending.bonus,
            "freed" if ending.frees_place else "kept",
            "counts" if ending.keeps_data else "does not count",
        ]
        for name, ending in PROLIFIC.items()
    }
