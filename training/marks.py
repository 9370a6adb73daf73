"""The control marks of chat templates, which no text in a prompt may contain. They are broken by a space.

A tokenizer, a server's or a local one, turns such marks into control tokens wherever they occur, so typing `<|im_end|>`
would end a turn. A space after the first character (`< |im_end|>`) prevents that for every tokenizer and survives
normalization, which drops zero-width characters. Text without a mark stays unchanged, as does text that was already
broken.

Prompts, training rows and exports for other programs all pass through here. Time is linear in the text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from training.mark_table import NAMED_MARKS, PATTERNS

# Versions of prompt rendering. 1 broke up only tokens flagged special, and only for models in this process. 3 is the
# first that begins a conversation without a chat template as its tokenizer begins a text.
FIRST_RENDERER, BEGINNING_RENDERER, RENDERER = 1, 3, 3
ROLE_LABELS = ("system", "user", "assistant")
# The speakers of templates in plain text, which servers may use: Vicuna (lmsys), Koala, Guanaco, Claude 2, Falcon
# (tiiuae), OpenChat (openchat), ChatGLM (zai-org/chatglm2-6b), ChatYuan (ClueAI) and others.
SPEAKERS = (
    *ROLE_LABELS, "human", "gpt", "### system", "### user", "### human", "### assistant", "falcon", "gpt4 correct user",
    "gpt4 correct assistant", "问", "答", "用户", "小元", "系统", "助手",
)  # fmt: skip
INLINE_SPEAKERS = ("USER", "ASSISTANT")  # Vicuna's, which are within a line
HEADINGS = ("### instruction", "### input", "### response")  # Alpaca's (tatsu-lab)

_LABEL_BLANKS, _LABEL_REACH = 32, 96  # characters between a label and its colon, and with the label
_LONGEST_INNER = 64  # characters between the ends of a mark of a pattern
_REMEMBERED, _LONGEST_REMEMBERED = 1024, 8192  # texts, and characters of one
_MOST_FOLDED = 20_000  # characters whose folding is remembered
_LEAST_PART = 3  # characters of a mark at the end of a text that what follows might complete
_LINE_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_DROPPED_ASCII = re.compile(r"[\0-\x08\x0e-\x1b\x7f]")
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800"  # letters and symbols that show nothing
# Letters of other scripts that look like those of roles and marks, and other colons.
_LOOKALIKES = str.maketrans(
    "аеіјморсѕтухАВЕІКМНОРСЅТХαιοριτυνΑΒΕΙΚΜΝΟΡΤΧıꓲ։׃∶꞉˸܃܄᛬⁚",
    "aeijmopcstyxABEIKMHOPCSTXaiopitvvABEIKMNOPTXil:::::::::",
)


class OwnMarks(NamedTuple):
    """One tokenizer's marks beyond those of the common families: the arguments of `Marks` as plain values."""

    tokens: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    inline: tuple[str, ...] = ()
    normalized: bool = False
    removed: tuple[str, ...] = ()


class _Folding(dict[int, str]):
    """Code points → what a careless reader or a normalizing tokenizer takes them for."""

    def __missing__(self, point: int) -> str:
        kept = [
            each
            for each in unicodedata.normalize("NFKD", chr(point))
            if each.isspace() or unicodedata.category(each) not in ("Cc", "Cf", "Mn", "Me")
        ]
        found = "" if chr(point) in _FILLERS else "".join(kept).translate(_LOOKALIKES)
        if len(self) < _MOST_FOLDED:
            self[point] = found
        return found


_FOLDING = _Folding()
# All characters that begin a mark of the table or follow a speaker, also in other widths; a text without any has no
# marks.
_FIRST_SIGNS = ("<", "[", "]", "\N{WHITE LEFT-POINTING TRIANGLE}")
_BEGINS = re.compile(
    "[{}]".format(
        "".join(
            re.escape(chr(point))
            for block in (range(0x80), _LOOKALIKES, range(0x2000, 0x3000), range(0xFE00, 0xFFF0))
            for point in block
            if _FOLDING[point][:1] in _FIRST_SIGNS or ":" in _FOLDING[point]
        )
    )
)


class Marks:
    """Breaks the marks of the common families, and `tokens`, in texts.

    `labels` are names that a plain-text prompt gives its speakers, beyond SPEAKERS: with a colon they are marks at the
    beginning of a line, in any letter case and with any number of blanks and `#`; `inline` ones, exactly as written,
    are marks anywhere. `normalized` says that the tokenizer ignores case, accents and the like when it looks for its
    tokens. Tokens of one character cannot be broken: `removed` ones become a space, others stay.
    """

    def __init__(
        self,
        tokens: Iterable[str] = (),
        labels: Sequence[str] = (),
        inline: Sequence[str] = (),
        normalized: bool = False,
        removed: Iterable[str] = (),
    ) -> None:
        known = {each for each in tokens if len(each.strip()) > 1}
        words = {each for each in known if len(folding(each)) < 2 or not (normalized or _has_sign(each))}
        signs = {folding(each) for each in known - words}
        self._exact = _pattern(words)
        own = f"|(?{'i' if normalized else ''}:{_pattern_of(signs)})" if signs else ""
        self._sign = re.compile(_FAMILIES + own)
        firsts = {*_FIRST_SIGNS, *(each for sign in signs for each in (sign[0], sign[0].lower(), sign[0].upper()))}
        self._first = re.compile(f"[{''.join(map(re.escape, sorted(firsts)))}]")
        self._label = re.compile(f"(?i:{'|'.join(map(_label_source, (*SPEAKERS, *labels)))})\\Z")
        self._inline = re.compile(
            "|".join(rf"{re.escape(each)}\s{{0,{_LABEL_BLANKS}}}:" for each in (*INLINE_SPEAKERS, *inline))
        )
        self._has_tokens = bool(known)
        signs |= set(NAMED_MARKS)
        self._begun = frozenset(sign[:at] for sign in signs for at in _cuts(sign) if not sign[0].isalnum())
        self._ended = frozenset(sign[-at:] for sign in signs for at in _cuts(sign) if not sign[-1].isalnum())
        self._longest = max(map(len, signs))
        removed = "".join(each for each in removed if len(each) == 1)
        self._removed = {ord(each): " " for each in removed}
        self._remembered = lru_cache(_REMEMBERED)(self._break_marks)  # each turn of a match repeats the earlier ones

    def broken(self, text: str) -> str:
        """The text with a space after the first character of each mark, and of possible parts of marks at its ends."""
        if not self._has_tokens and not _BEGINS.search(text) and ">" not in text[: self._longest]:
            return text
        return self._remembered(text) if len(text) <= _LONGEST_REMEMBERED else self._break_marks(text)

    def _break_marks(self, text: str) -> str:
        if self._removed:
            text = text.translate(self._removed)
        while places := self._places_for_spaces(text):
            if None in places:  # a mark begins within one character, such as a unit of measurement
                text = "".join(each if len(_FOLDING[ord(each)]) < 2 else _FOLDING[ord(each)] for each in text)
            else:
                text = "".join(_parts_with_spaces(text, sorted(places)))
        return text

    def _places_for_spaces(self, text: str) -> set[int | None]:
        """Where to insert spaces: before the characters at these indices; None for a place within a character."""
        found: set[int | None] = {
            match.start() + 1 + _blanks(text, match.start()) for match in self._exact.finditer(text)
        }
        folded = folding(text)
        begins = {match.start() for match in self._first.finditer(folded) if self._sign.match(folded, match.start())}
        begins |= {match.start() for match in self._inline.finditer(folded)}
        begins |= set(self._label_places(folded))
        begins |= set(self._at_ends(folded))
        if folded is text:
            return found | {at + 1 + _blanks(text, at) for at in begins}
        return found | _in_original(text, {at + 1 + _blanks(folded, at) for at in begins})

    def _label_places(self, folded: str) -> Iterator[int]:
        """The indices of labels at the beginning of a line."""
        at = folded.find(":")
        while at >= 0:
            begin = max(0, at - _LABEL_REACH)
            said = folded[begin:at]
            label = self._label.search(said.rstrip())
            if label is not None and len(label[0]) == 1 and label.end() < len(said):
                label = None  # a single character separated from its colon is no mark
            if label is not None and _begins_line(folded, begin + label.start()):
                # A single # cannot be split: split the name after it.
                alone = label[0].startswith("#") and not label[0].startswith("##")
                yield begin + label.start() + (len(label[0]) - len(label[0][1:].lstrip()) if alone else 0)
            at = folded.find(":", at + 1)

    def _at_ends(self, folded: str) -> Iterator[int]:
        """The indices where a text ends with the start of a mark or starts with the end of one: a template may complete
        it.
        """
        tail = folded[-_LONGEST_INNER - 3 :]
        if begun := _BEGUN.search(tail):
            yield len(folded) - len(tail) + begun.start()
        if _ENDED.match(folded):
            yield 0
        for size in range(_LEAST_PART, min(self._longest, len(folded) + 1)):
            if folded[-size:] in self._begun:
                yield len(folded) - size
            if folded[:size] in self._ended:
                yield 0


def folding(text: str) -> str:
    """The text in the form searched for marks: compatible forms and look-alikes as ASCII, no invisible characters.

    Returns the same object if nothing changes.
    """
    if text.isascii() and not _DROPPED_ASCII.search(text):
        return text
    return text.translate(_FOLDING)


def broken_chat(messages: Iterable[Mapping[str, Any]], marks: "Marks | None" = None) -> list[dict[str, Any]]:
    """The messages with the marks in their content broken: `marks`, or those of the common families."""
    marks = FAMILIES if marks is None else marks
    return [{**each, "content": marks.broken(each["content"])} for each in messages]


def _label_source(label: str) -> str:
    """A pattern for a speaker's name or a heading, including any blanks it may contain."""
    if not label.startswith("#"):
        return re.escape(label)
    name = label.lstrip("# ")
    blank = f"[^\\S{re.escape(''.join(_LINE_BREAKS))}]"  # a heading is in one line
    return rf"#+{blank}{{0,{_LABEL_BLANKS}}}{re.escape(name)}"


def _has_sign(token: str) -> bool:
    return not all(each.isalnum() or each.isspace() for each in token)


def _cuts(sign: str) -> range:
    return range(_LEAST_PART, len(sign))


def _blanks(text: str, at: int) -> int:
    """How many blanks the mark at this index begins with."""
    end = at
    while end < len(text) and text[end].isspace():
        end += 1
    return end - at


def _begins_line(text: str, at: int) -> bool:
    """Whether only blanks precede this index in its line."""
    while at and text[at - 1].isspace():
        if text[at - 1] in _LINE_BREAKS:
            return True
        at -= 1
    return at == 0


def _in_original(text: str, places: set[int]) -> set[int | None]:
    """Indices in the folded text as indices in the original; None for those within a single original character."""
    found: set[int | None] = set()
    if places:
        length = 0
        for at, character in enumerate(text):
            size = len(_FOLDING[ord(character)])
            if size and length in places:
                found.add(at)
            if any(length + inner in places for inner in range(1, size)):
                found.add(None)
            length += size
        if length in places:
            found.add(len(text))
    return found


def _parts_with_spaces(text: str, places: Sequence[Any]) -> Iterator[str]:
    begin = 0
    for at in places:
        yield text[begin:at]
        yield " "
        begin = at
    yield text[begin:]


# ---- Patterns ---------------------------------------------------------------------


def _pattern(tokens: Iterable[str]) -> re.Pattern[str]:
    source = _pattern_of(tokens)
    return re.compile(f"(?={source})" if source else r"(?!)")


def _pattern_of(tokens: Iterable[str]) -> str:
    """A pattern for the beginning of any of the tokens that looks at each character once; "" if there are no tokens."""
    tree: dict[str, Any] = {}
    for token in tokens:
        node = tree
        for character in token:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branches(tree) if tree else ""


def _branches(node: dict[str, Any]) -> str:
    if "" in node:  # a token ends here, which is enough
        return ""
    found = []
    for character, rest in node.items():
        chain = character
        while len(rest) == 1 and "" not in rest:  # a run without branches, so that long tokens do not nest
            [(character, rest)] = rest.items()
            chain += character
        found.append(re.escape(chain) + _branches(rest))
    return found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"


_INNER = rf"[^\s<>|\[\]]{{1,{_LONGEST_INNER}}}"
_FAMILIES = "|".join(
    (
        *(pattern.replace("INNER", _INNER) for pattern in PATTERNS),
        f"(?i:{_pattern_of(each for each in NAMED_MARKS if each.startswith('<'))})",
        _pattern_of(each for each in NAMED_MARKS if not each.startswith("<")),
    )
)
_BEGUN = re.compile(rf"<\|[^\s<>|]{{0,{_LONGEST_INNER}}}\|?\Z|\[\|[^\s\[\]|]{{0,{_LONGEST_INNER}}}\|?\Z")
_ENDED = re.compile(rf"[^\s<>|\[\]]{{1,{_LONGEST_INNER}}}\|[>\]]")
FAMILIES = Marks()
OTHERS = Marks(labels=HEADINGS)  # for words in none of our templates
