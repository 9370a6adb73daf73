"""The memories of agents at the start: questions with answers, good ones and bad ones.

A file holds them as JSON: {"good": [{"question": "…", "answer": "…"}, …], "bad": […]}. The published one is a list of
dialogues, [{"question": "…", "response": "You: …", "morality_label": "good"}, …], of which the first answer is used.

Source: Liu et al. 2023, arXiv 2305.16960, and the programs that were released with it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from app.core.config import ROOT
from app.core.errors import Invalid, Phrase, Verbatim
from app.society.config import BAD, GOOD, Label
from app.society.text_files import check_text, decode, decode_json, read_bytes

SHIPPED = ROOT / "data" / "society" / "priors.json"
MOST_DIALOGUES = 10_000  # of each label, taken from a published file, which has more than any grid remembers
_FIELD = "priors"

Priors: TypeAlias = Mapping[Label, tuple[tuple[str, str], ...]]  # questions with answers, by label


def read_priors(path: Path | None = None) -> Priors:
    """The first memories in a file; None: the shipped ones. Raises Invalid with the path and the position."""
    path = path or SHIPPED
    return parse_priors(read_bytes(path, _FIELD), str(path))


def parse_priors(raw: bytes, name: str) -> Priors:
    """The first memories in a file's content, called `name` in errors; a label may be missing. Raises Invalid."""
    found = decode_json(decode(raw, _FIELD, name), _FIELD, name)
    if isinstance(found, list) and found:
        return _first_answers(found, name)
    if not isinstance(found, dict) or not found or not set(found) <= {GOOD, BAD}:
        got = Verbatim(", ".join(map(repr, found))[:80] or "none" if isinstance(found, dict) else type(found).__name__)
        raise Invalid(
            _FIELD,
            expected=Phrase("an object with lists of questions and answers under the labels good and bad"),
            got=got,
            subject=name,
        )
    return {label: _read_question_answer_pairs(found[label], label, name) for label in (GOOD, BAD) if label in found}


def _read_question_answer_pairs(raw: object, label: Label, name: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, list):
        raise Invalid(
            _FIELD,
            expected=Phrase("a list under the label %(label)s", label=label),
            got=Verbatim(type(raw).__name__),
            subject=name,
        )
    pairs: dict[str, str] = {}
    for number, each in enumerate(raw, 1):
        place = Phrase("%(name)s, %(label)s, item %(number)s", name=name, label=label, number=number)
        if not isinstance(each, dict) or set(each) != {"question", "answer"}:
            got = Verbatim(", ".join(map(str, each))[:80] or "none") if isinstance(each, dict) else each
            raise Invalid(_FIELD, expected=Phrase("an object with question and answer"), got=got, subject=place)
        question = check_text(each["question"], _FIELD, place)
        if question in pairs:
            raise Invalid(
                _FIELD,
                expected=Phrase("each question once under a label, as it keeps its first answer"),
                got=question,
                subject=place,
            )
        pairs[question] = check_text(each["answer"], _FIELD, place)
    return tuple(pairs.items())


def _first_answers(dialogues: Sequence[object], name: str) -> Priors:
    """The questions of dialogues with their first answers, by label; unanswered and repeated ones are skipped."""
    pairs: dict[Label, dict[str, str]] = {GOOD: {}, BAD: {}}
    for number, each in enumerate(dialogues, 1):
        place = Phrase("%(name)s, item %(number)s", name=name, number=number)
        found = each if isinstance(each, dict) else {}
        question, answer, label = (found.get(key) for key in ("question", "response", "morality_label"))
        if not (isinstance(question, str) and isinstance(answer, str) and label in (GOOD, BAD)):
            expected = Phrase("an object with question, response and morality_label, which is good or bad")
            raise Invalid(_FIELD, expected=expected, got=each, subject=place)
        first = answer.partition("Friend:")[0].strip().removeprefix("You:").strip()
        known = pairs[GOOD if label == GOOD else BAD]
        if question.strip() and first and len(known) < MOST_DIALOGUES:
            known.setdefault(check_text(question, _FIELD, place), check_text(first, _FIELD, place))
    return {label: tuple(known.items()) for label, known in pairs.items() if known}
