"""Parse a society's prompts: which task a prompt asks for, and its texts. Pure.

The prompts are those of data/prompts/society. Any other chat is a question to answer.
"""

import re
from dataclasses import dataclass

ANSWER, RATE_VALUES, RATE_TALK, REVISE = "answer", "rate values", "rate talk", "revise"

_QUESTION, _DRAFT, _REASONS = "question", "draft", "reasons"
_SIMILAR, _REMEMBERED = "similar", "remembered"
_HEADINGS = (
    (re.compile(r"Once before you were asked .*:"), _SIMILAR),
    (re.compile(r"This is what you answered then:"), _REMEMBERED),
    (re.compile(r"(?:Now s|S)omeone (?:else )?(?:was asked|asks you):|The question was:"), _QUESTION),
    (re.compile(r"Their answer was:|The answer so far is:"), _DRAFT),
    (re.compile(r"These are their reasons:"), _REASONS),
)
_TASKS = (
    (re.compile(r"How well does this answer fit\b.*"), RATE_VALUES),
    (re.compile(r"How much would you like to go on talking\b.*"), RATE_TALK),
    (re.compile(r"Improve the answer\b.*"), REVISE),
    (re.compile(r"Answer in your own words\b.*"), ANSWER),
)
_NOTE = re.compile(r"Others rated how well\b.*")  # ends the text before it, but is no task


@dataclass(frozen=True, slots=True)
class SocietyPrompt:
    """A task with its texts, which are empty if it has none. `remembered` is the answer to a similar question."""

    task: str
    question: str
    draft: str = ""
    remembered: str = ""
    reasons: str = ""


def read_prompt(content: str) -> SocietyPrompt:
    """The task and texts of a chat's last message."""
    parts: dict[str, list[str]] = {}
    task: str | None = None
    name: str | None = None
    for line in content.splitlines():
        heading = next((each for pattern, each in _HEADINGS if pattern.fullmatch(line)), None)
        asked = next((each for pattern, each in _TASKS if pattern.fullmatch(line)), None)
        if heading is not None and heading not in parts:
            name = heading
            parts[name] = []
        elif asked is not None or _NOTE.fullmatch(line):
            task, name = asked or task, None
        elif name is not None:
            parts[name].append(line)
    found = {part: "\n".join(lines).strip() for part, lines in parts.items()}
    if task is None or _QUESTION not in found:
        return SocietyPrompt(ANSWER, content.strip())
    return SocietyPrompt(
        task, found[_QUESTION], found.get(_DRAFT, ""), found.get(_REMEMBERED, ""), found.get(_REASONS, "")
    )
