"""The lines of the human dialogues on Deal or No Deal, each one speaker's perspective, in all published forms. Pure.

- `1 0 4 2 1 2 YOU: … <eos> THEM: … <eos> YOU: <selection> item0=0 item1=4 item2=0 <eos> reward=8 agree 1 4 4 1 1 2`:
  count and value three times, the turns, YOUR choice (or `no agreement`, `disconnect`), its reward, whether the
  choices fit, and the partner's counts and values
- `<input> … </input> <dialogue> … </dialogue> <output> … </output> <partner_input> … </partner_input>`: the output
  has both choices, YOURS first, or six times `<disagree>`, `<no_agreement>` or `<disconnect>`
- `{"input": {"count": [1, 4, 1], "value": [0, 2, 2]}, "dialogue": …, "output": …, "partner_input": {…}}`: the same
  as an object, as `deal_or_no_dialog` at Hugging Face has it

Source: Lewis et al. 2017, arXiv 1706.05125.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.core.errors import Invalid, Verbatim
from app.datasets.json_list import fields_of
from app.games.negotiation.contexts import Context, Counts, context_of, three

AGREE, DISAGREE, NO_AGREEMENT, DISCONNECT = "agree", "disagree", "no agreement", "disconnect"
PLAIN, TAGGED = "plain", "tagged"
YOU, THEM = 0, 1

_SIX = r"[0-9]{1,3}(?: [0-9]{1,3}){5}"
_PLAIN = re.compile(
    rf"(?P<own>{_SIX}) (?P<turns>.*) <eos> reward=(?P<reward>\S+|no agreement) (?P<verdict>agree|disagree)"
    rf" (?P<partner>{_SIX})"
)
_TAGGED = re.compile(
    rf"<input> (?P<own>{_SIX}) </input> <dialogue> (?P<turns>.*) </dialogue> <output> (?P<output>.*) </output>"
    rf" <partner_input> (?P<partner>{_SIX}) </partner_input>"
)
_TURN = re.compile(r"(?P<who>YOU|THEM): ?(?P<text>.*)")
_SELECTION = "<selection>"
_CHOICE = re.compile(r"item0=([0-9]{1,3}) item1=([0-9]{1,3}) item2=([0-9]{1,3})")
_NO_CHOICE = {"no agreement": NO_AGREEMENT, "disconnect": DISCONNECT}
_FIELDS = ("input", "dialogue", "output", "partner_input")
_EOS = "<eos>"
_TAGS = {" ".join([f"<{tag}>"] * 6): tag.replace("_", " ") for tag in ("disagree", "no_agreement", "disconnect")}

Turn = tuple[int, str]  # by YOU or THEM, and the text
_Choices = tuple[Counts | None, Counts | None]


@dataclass(frozen=True, slots=True)
class Perspective:
    """One line: a dialogue from YOUR perspective. Values and choices are YOURS, then THEIRS; an unknown choice is
    None.
    """

    form: str  # plain | tagged
    context: Context
    turns: tuple[Turn, ...]
    selector: int | None  # who ended the talk with <selection>
    choices: _Choices
    verdict: str
    reward: str | None  # as written; the tagged form has none

    def mirrors(self, other: "Perspective") -> bool:
        """Whether the other line is the other side of the same dialogue."""
        return (
            self.form == other.form
            and self.context.counts == other.context.counts
            and self.context.values == other.context.values[::-1]
            and self.selector == (None if other.selector is None else 1 - other.selector)
            and self.turns == tuple((1 - who, text) for who, text in other.turns)
        )


def read_line(line: str, where: str) -> Perspective:
    """Read a plain or a tagged line. Raises Invalid; `where` names the line in it."""
    tagged = line.startswith("<input>")
    found = (_TAGGED if tagged else _PLAIN).fullmatch(line)
    if found is None:
        wanted = "<input> … <dialogue> … <output> … <partner_input> …" if tagged else "six numbers, turns, reward=…"
        raise Invalid(None, expected=f"a dialogue as {wanted}", got=line, subject=where)
    sides = [[int(number) for number in found[six].split()] for six in ("own", "partner")]
    context = _context([(six[0::2], six[1::2]) for six in sides], where)
    if tagged:
        return _tagged(context, found["turns"], found["output"], where)
    turns, selector, selected = _read_turns(found["turns"], where)
    own, unchosen = _own_choice_or_reason(selected or found["reward"], where)
    choices = _fitting((own, None), context, where)
    return Perspective(PLAIN, context, turns, selector, choices, unchosen or found["verdict"], found["reward"])


def read_record(raw: Any, where: str) -> Perspective:
    """Read an object with the content of a tagged line. Raises Invalid; `where` names the row in it."""
    if not isinstance(raw, dict) or not raw.keys() >= {*_FIELDS}:
        expected = f"an object with {{{', '.join(_FIELDS)}}}"
        raise Invalid(None, expected=expected, got=fields_of(raw), subject=where)
    context = _context([_side(raw[name], f"{where}, {name}") for name in ("input", "partner_input")], where)
    turns, output = (_joined_text(raw[name], f"{where}, {name}") for name in ("dialogue", "output"))
    return _tagged(context, turns, output, where)


def _side(raw: Any, where: str) -> tuple[Any, Any]:
    """Counts and values of three items, from two lists or a list of three objects."""
    if isinstance(raw, list) and all(isinstance(each, dict) for each in raw):
        raw = {name: [each.get(name) for each in raw] for name in ("count", "value")}
    sides = [raw.get(name) for name in ("count", "value")] if isinstance(raw, dict) else []
    if not all(isinstance(side, list) and len(side) == 3 for side in sides or [None]):
        raise Invalid(None, expected="count and value of three items", got=raw, subject=where)
    counts, values = sides
    return counts, values


def _joined_text(raw: Any, where: str) -> str:
    """A text given whole or in parts, which are words or turns."""
    if isinstance(raw, list) and all(isinstance(each, str) for each in raw):
        by_turns = _EOS not in raw and any(_TURN.fullmatch(each) for each in raw)
        raw = (f" {_EOS} " if by_turns else " ").join(raw)
    if not isinstance(raw, str):
        raise Invalid(None, expected="a text", got=raw, subject=where)
    return raw.strip()


def _tagged(context: Context, talk: str, output: str, where: str) -> Perspective:
    turns, selector, _ = _read_turns(talk, where)
    choices, verdict = _output(output, where)
    return Perspective(TAGGED, context, turns, selector, _fitting(choices, context, where), verdict, None)


def _fitting(choices: _Choices, context: Context, where: str) -> _Choices:
    for choice in choices:
        if choice is not None and any(n > count for n, count in zip(choice, context.counts, strict=True)):
            raise Invalid(None, expected=f"choices of at most {context.counts}", got=Verbatim(choice), subject=where)
    return choices


def _context(sides: Sequence[tuple[Any, Any]], where: str) -> Context:
    """The context from the counts and values of both sides."""
    (counts, mine), (others, theirs) = sides
    if counts != others:
        raise Invalid(None, expected="the same counts for both", got=Verbatim(f"{counts} and {others}"), subject=where)
    try:
        return context_of(counts, [mine, theirs])
    except Invalid as error:
        raise error.at(where) from None


def _read_turns(talk: str, where: str) -> tuple[tuple[Turn, ...], int | None, str]:
    """The turns, the speaker who selected, and the text after `<selection>`."""
    chunks = talk.split(f" {_EOS} ")
    turns: list[Turn] = []
    for at, chunk in enumerate(chunks):
        last = at + 1 == len(chunks)
        turn = _TURN.fullmatch(chunk)
        if turn is None:
            if last and chunk in _NO_CHOICE:
                return tuple(turns), None, chunk
            raise Invalid(None, expected="YOU: or THEM: and words", got=chunk, subject=f"{where}, turn {at}")
        who, text = (YOU if turn["who"] == "YOU" else THEM), turn["text"]
        if last and text.startswith(_SELECTION):
            return tuple(turns), who, text.removeprefix(_SELECTION).strip()
        turns.append((who, text))
    return tuple(turns), None, ""


def _own_choice_or_reason(raw: str, where: str) -> tuple[Counts | None, str | None]:
    """YOUR choice, or the reason that it is missing."""
    if raw in _NO_CHOICE:
        return None, _NO_CHOICE[raw]
    return _counts(raw, where), None


def _output(raw: str, where: str) -> tuple[_Choices, str]:
    if raw in _TAGS:
        return (None, None), _TAGS[raw]
    words = raw.split(" ")
    if len(words) != 6:
        raise Invalid(None, expected="six choices", got=raw, subject=f"{where}, output")
    return (_counts(" ".join(words[:3]), where), _counts(" ".join(words[3:]), where)), AGREE


def _counts(raw: str, where: str) -> Counts:
    found = _CHOICE.fullmatch(raw)
    if found is None:
        raise Invalid(None, expected="a choice as item0=… item1=… item2=…", got=raw, subject=where)
    return three([int(number) for number in found.groups()])
