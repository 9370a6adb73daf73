"""All that version 0.2 could be asked for can be asked for still, or CHANGELOG.md says under which name."""

import json
from collections.abc import Iterable
from pathlib import Path

from app.core.config import ROOT
from tests.inventory import inventory

BEFORE = Path(__file__).parent.parent / "golden" / "inventory.json"


def with_choices(parts: Iterable[str]) -> set[str]:
    """The parts of a command or form, and the names of those fields that are a choice of values."""
    return {each for part in parts for each in (part, part.partition("=")[0])}


def is_there(part: str, now: Iterable[str]) -> bool:
    """Whether a part is among those of now; an argument that is a choice may have got further values."""
    choices = set(part.split("|"))
    return part in with_choices(now) or (len(choices) > 1 and any(choices <= set(each.split("|")) for each in now))


def test_no_command_option_or_field_of_a_form_is_gone_without_a_word() -> None:
    before, now = json.loads(BEFORE.read_text(encoding="utf-8")), inventory()
    said = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    gone = [
        f"{what}: {name}, {each}"
        for what in before
        for name, parts in before[what].items()
        for each in parts
        if not is_there(each, now[what].get(name, ())) and f"`{each}`" not in said
    ]
    assert gone == []
