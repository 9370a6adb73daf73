"""Characters of a move that show nothing or turn the text: named in the event, and shown as marks."""

import re

import pytest

from app.core.config import ROOT
from app.games.base import Event
from app.matches import invisible as module
from app.matches.events import Violated, from_json, to_json
from app.matches.invisible import invisible, visible

HIDDEN = {
    "l\u200bem\u200bon": ["U+200B"],
    "\u202egnp.exe\u202c": ["U+202E", "U+202C"],
    "\u2066a\u2069": ["U+2066", "U+2069"],
    "le\u200dmon and le\u200cmon": ["U+200D", "U+200C"],
    "l\ufe0femon": ["U+FE0F"],
    "lem\u00adon": ["U+00AD"],
    "\ufefflemon": ["U+FEFF"],
    "hi\U000e0041\U000e0042": ["U+E0041", "U+E0042"],
    "\u200d": ["U+200D"],
    "\u3164": ["U+3164"],
}
PLAIN = [
    "lemon", "", "Zitrone – “süß”", "👨\u200d👩\u200d👧 are here", "❤\ufe0f and ❤\ufe0f\u200d🔥", "1\ufe0f\u20e3 first",
    "©\ufe0f", "می\u200cخواهم", "क्\u200dष", "שלום", "日本語", "e\u0301",
]  # fmt: skip


@pytest.mark.parametrize(("text", "codes"), HIDDEN.items())
def test_what_shows_nothing_is_named_and_marked(text: str, codes: list[str]) -> None:
    assert invisible(text) == codes
    shown = visible(text)
    assert invisible(shown) == []
    assert len(shown) == len(text)
    assert "\N{REPLACEMENT CHARACTER}" in shown


@pytest.mark.parametrize("text", PLAIN)
def test_what_scripts_and_emoji_need_is_left_alone(text: str) -> None:
    assert invisible(text) == []
    assert visible(text) == text


@pytest.mark.parametrize(
    "event", [Event("message", 0, "l\u200bemon", {}), Violated(1, "\u202ex", "grammar", "no")], ids=["move", "refused"]
)
def test_the_log_names_them_and_keeps_what_was_sent(event: Event | Violated) -> None:
    raw = to_json(event)
    assert raw["invisible"] == invisible(event.text)
    assert raw["text"] == event.text
    assert from_json(raw) == event
    del raw["invisible"]  # as in logs from before they were named
    assert from_json(raw) == event


def test_other_events_are_as_they_were() -> None:
    assert "invisible" not in to_json(Event("message", 0, "lemon", {}))
    assert "invisible" not in to_json(Violated(0, "lemon", "grammar", "no"))


def test_the_browser_knows_the_same_characters() -> None:
    pattern = re.search(r"/\[(.*)\]/gu;", (ROOT / "static/js/visible.js").read_text())
    assert pattern
    written = pattern[1].replace("{", "").replace("}", "")
    ours = module._JOINERS + module._SELECTORS + module._OTHERS
    spelled = "".join(each if each == "-" else f"\\u{ord(each):0{4 if ord(each) < 0x10000 else 5}x}" for each in ours)
    assert written == spelled
