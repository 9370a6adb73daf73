"""A model's text as tokens: digits of any script as digits, without markup, thoughts and quotations. Pure.

Every character keeps its position, so that positions in the plain text are valid in the original.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, overload

from app.society.ratings.words import REASON, folded, known_words, number_words, roles_of

NUMBER, WORD, MARK, LINE, OURS = "number", "word", "mark", "line", "ours"


class Token(NamedTuple):
    """A number, a folded word, a mark, the end of a line, or a mention of the requested scale (`ours`)."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def roles(self) -> frozenset[str]:
        """The roles of its word."""
        return roles_of(self.text) if self.kind == WORD else frozenset()


# ---- Characters -----------------------------------------------------------------------

_SAME = {
    **dict.fromkeys("–—―‒﹘─", "–"), **dict.fromkeys("−‐‑﹣", "-"), **dict.fromkeys("。।．", "."),
    **dict.fromkeys("،、，٬", ","), **dict.fromkeys("؛；", ";"),
    "؟": "?", "٫": ".", "٪": "%", "∶": ":",
    "’": "'", "‘": "'", "ʼ": "'", **dict.fromkeys("“”„«»‹›「」『』〝〞", '"'), **dict.fromkeys("【〔［〖", "["),
    **dict.fromkeys("】〕］〗", "]"), **dict.fromkeys("→⇒➜➡⟶➔", "→"), "‥": "…", "～": "~", "〜": "~", "∼": "~",
    "⁄": "/", "÷": "/", "∕": "/", "★": "★", "☆": "★", "⭐": "★", "🌟": "★",
}  # fmt: skip
_CIRCLED = {0x2460: 1, 0x2776: 1, 0x2780: 1, 0x278A: 1}  # the first of nine in each case


@lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    if character.isascii():
        return " " if character in "\t\r\x0b\x0c\x00" else character
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    for first, digit in _CIRCLED.items():
        if first <= ord(character) < first + 9:
            return str(digit + ord(character) - first)
    if (same := _SAME.get(character)) is not None:
        return same
    category = unicodedata.category(character)
    if category in ("Cf", "Zs", "Me", "Cc") or "\ufe00" <= character <= "\ufe0f":
        return " "
    if character in "\u2028\u2029":
        return "\n"
    if category in ("So", "Sk"):
        return " "
    usual = character if category == "No" else unicodedata.normalize("NFKC", character)
    return usual if len(usual) == 1 else character


# ---- What is no part of the answer ----------------------------------------------------

_THOUGHTS = "think|thinking|thought|thoughts|reasoning|analysis|scratchpad|reflection|reflect"
_THOUGHT = re.compile(rf"[<\[◁](?P<close>/?)(?:{_THOUGHTS})[>\]▷]", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>")
_CHANNEL = re.compile(r"<\|[a-z_]{1,30}\|>")
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_QUOTED_LINE = re.compile(r"^[ ]{0,3}>.*$", re.MULTILINE)
_QUOTE = re.compile(r"^[ ]{0,3}>(?=\s*[^\s\d=])", re.MULTILINE)
_DOTS = re.compile(r"\.{2,}")
_FRACTION = re.compile(r"\\[dt]?frac\{(\d+)\}\{(\d+)\}")
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w-]{0,30})(?P<rest>[^<>\n]{0,80})>")
_PLAIN_TAGS = {"b", "i", "em", "strong", "span", "u", "code", "mark", "small", "sup", "sub", "font", "a"}
_BREAKS = {"br", "p", "div", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "hr", "body", "html"}
_BRACKETS = re.compile(r"[<{](\s{0,3}-?\d+(?:[.,/]\d+)?\s{0,3})[>}]")
_LATEX = re.compile(r"\\(?:text|mathbf|mathrm|textbf|boldsymbol|mbox)\b|\\[()\[\],;!]|\\")
_SHOWN = str.maketrans(dict.fromkeys("*_`$\\", " "))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def plain_text(text: str) -> str:
    """The text without thoughts, quotations and markup, of the same length."""
    found = "".join(map(_plain_character, text))
    found = _DOTS.sub(lambda match: "…".ljust(len(match[0])), _without_thoughts(found))
    found = _STRUCK.sub(_blank, found)
    found = _without_quotations(found)
    found = _FRACTION.sub(lambda match: f"{match[1]}/{match[2]}".ljust(len(match[0])), found)
    found = found.replace("\\boxed", "\nboxed").replace("boxed{", "boxed:")
    found = _LATEX.sub(_blank, _TAG.sub(_shown_tag, _BRACKETS.sub(r" \1 ", found)))
    return found.translate(_SHOWN)


def _without_thoughts(text: str) -> str:
    if final := _FINAL_CHANNEL.search(text):
        text = " " * final.end() + text[final.end() :]
    text = _CHANNEL.sub(lambda match: "\n".rjust(len(match[0])), text)
    parts: list[str] = []
    cut = at = 0
    opened = False
    for tag in _THOUGHT.finditer(text):
        if not tag["close"]:
            if not opened:
                parts.append(text[at : tag.start()])
                at, opened = tag.start(), True
        elif opened:
            parts.append(" " * (tag.end() - at))
            at, opened = tag.end(), False
        else:  # the beginning of the reasoning was cut off
            parts.clear()
            cut = at = tag.end()
    parts.append(" " * (len(text) - at) if opened else text[at:])
    return " " * cut + "".join(parts)


def _without_quotations(text: str) -> str:
    """The text without quoted lines, unless every line is quoted."""
    rest = _QUOTED_LINE.sub(_blank, text)
    return rest if rest.strip() else _QUOTE.sub(_blank, text)


def _shown_tag(match: re.Match[str]) -> str:
    """`<rating>` as a line with a label; tags that only format, as spaces; a placeholder with words is removed."""
    name, rest = match["name"].lower(), match["rest"].strip(" /")
    if name in _PLAIN_TAGS:
        return _blank(match)
    if match["close"] or name in _BREAKS:
        return "\n".ljust(len(match[0]))
    if name in ("td", "th"):
        return "|".ljust(len(match[0]))
    if rest and "=" not in rest:
        return _blank(match)
    inner = match[0][1:-1].replace("_", " ").replace("/", " ")
    return f"\n{inner}{' ' if '=' in rest and rest[-1:].isdigit() else ':'}"


# ---- Tokens ---------------------------------------------------------------------------

# Marks written above, below or after letters, from Latin scripts to those of India and Tibet.
_MARKS_OF_WORDS = "\u200c\u200d" + "".join(
    chr(code) for code in range(0x300, 0x1000) if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
# scripts without spaces between words
_JOINED = "\u0e00-\u0e7f\u2e80-\u2fff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_LETTER = rf"[^\W\d_{_JOINED}]"
_JOINED_WORDS = sorted((word for word in known_words() if re.match(rf"[{_JOINED}]", word)), key=len, reverse=True)
_TOKEN = re.compile(
    rf"(?P<number>\d+(?:[.,]\d+)*½?|½)"
    rf"|(?P<word>{'|'.join(map(re.escape, _JOINED_WORDS))}|[{_JOINED}]"
    rf"|n/a(?!\w)|(?:[cdjlmnst]|qu)'(?={_LETTER})|{_LETTER}(?:{_LETTER}|[{_MARKS_OF_WORDS}])*(?:'(?:{_LETTER}|[{_MARKS_OF_WORDS}])+|'(?=\s))?)"
    rf"|(?P<line>\n)|(?P<mark>->|=>|<=|>=|\S)",
    re.IGNORECASE,
)
_HUMPS = re.compile("([a-z]+)([A-Z][a-z]+)")  # keys as in programs: "alignmentScore"
_UNSEEN = "\"'"
SEPARATORS = frozenset((":", "=", "→", "->", "=>", "–", "-"))
_MOST_OF_LABEL = 4  # words after the first in a reason's label


class Tokens(Sequence[Token]):
    """The tokens of a text, with queries by position; beyond the text, every token is the end of a line."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    @overload
    def __getitem__(self, at: int) -> Token: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Token]: ...
    def __getitem__(self, at: int | slice) -> Token | Sequence[Token]:
        return self._tokens[at]

    def text(self, at: int) -> str:
        """The text of a token; empty beyond the text."""
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def kind(self, at: int) -> str:
        """The kind of a token."""
        return self._tokens[at].kind if 0 <= at < len(self._tokens) else LINE

    def roles(self, at: int) -> frozenset[str]:
        """The roles of a token's word."""
        return self._tokens[at].roles if 0 <= at < len(self._tokens) else frozenset()

    def is_number(self, at: int) -> bool:
        """Whether a token is a number, in digits or as a word."""
        return self.kind(at) == NUMBER or (self.kind(at) == WORD and self.text(at) in number_words())

    def is_reason(self, at: int) -> bool:
        """Whether a label of a reason begins here: "Reason:", "Reason for my rating:", "Lý do:"."""
        if REASON not in self.roles(at):
            return False
        behind = at + 1
        while behind <= at + _MOST_OF_LABEL and self.roles(behind):
            behind += 1
        return self.text(behind) in SEPARATORS and (behind == at + 1 or not self.is_number(behind + 1))

    def touches(self, at: int) -> bool:
        """Whether a token directly follows the one before it."""
        return 0 < at < len(self._tokens) and self._tokens[at - 1].end == self._tokens[at].begin


def tokens_of(plain: str, ours: list[tuple[int, int]]) -> Tokens:
    """The tokens of a plain text, in which the spans `ours` mention the requested scale."""
    found = []
    spans = iter(ours)
    span = next(spans, None)
    for token in _tokens(plain):
        while span and span[1] <= token.begin:
            found.append(Token(OURS, "", *span))
            span = next(spans, None)
        if not (span and span[0] <= token.begin):
            found.append(token)
    return Tokens(found + ([Token(OURS, "", *span)] if span else []))


def _tokens(plain: str) -> Iterator[Token]:
    before = LINE
    for match in _TOKEN.finditer(plain):
        kind = match.lastgroup or MARK
        if kind == MARK and match[0] in _UNSEEN:
            continue
        if kind == WORD and (humps := _HUMPS.fullmatch(match[0])):
            at = match.start() + len(humps[1])
            yield Token(WORD, folded(humps[1]), match.start(), at)
            yield Token(WORD, folded(humps[2]), at, match.end())
            continue
        # "A" in "Model A" is a name, not an article.
        is_name = (
            kind == before == WORD
            and len(match[0]) == 1
            and match[0].isascii()
            and match[0].isupper()
            and match[0] != "I"
        )
        yield Token(kind, folded(match[0]) if kind == WORD and not is_name else match[0], match.start(), match.end())
        before = kind
