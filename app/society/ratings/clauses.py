"""The clause before a number: its possible label, and where it begins. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from app.society.ratings import words
from app.society.ratings.labels import MOST_WORDS, LabelReader
from app.society.ratings.text import LINE, MARK, NUMBER, SEPARATORS, WORD, Token, Tokens

_FAR = MOST_WORDS + 8  # tokens in a clause, including brackets
_CLAUSE_ENDS = frozenset(".!?;|{}#,…")
_FIELD_ENDS = frozenset("{,|#.;!}(?…")
_BRACKETS = frozenset("()[]#<•·")
BULLETS = frozenset("-–•·#>+▪◦‣([\n")
_ABBREVIATIONS = frozenset(("approx", "ca", "circa", "env", "aprox", "max", "min"))


class Before(NamedTuple):
    """The part of a number's clause that precedes it, and its position in the text."""

    tokens: Sequence[Token]
    begin: int
    opens_field: bool  # whether the clause begins a line, a sentence, or what a program would take for a field
    opens_text: bool


class Clauses:
    """Finds the clauses before the numbers of a text."""

    def __init__(self, tokens: Tokens, labels: LabelReader) -> None:
        self._tokens = tokens
        self._labels = labels
        said = (at for at, each in enumerate(tokens) if each.kind in (WORD, NUMBER))
        self._first_said = next(said, 0)
        self._last = next((at for at in range(len(tokens) - 1, -1, -1) if tokens[at].kind != LINE), -1)

    def before(self, at: int) -> Before:
        """The clause before a token; with the line above, if the token begins a line and that line is a label."""
        begin = self.begin(at)
        found = self.without_brackets(begin, at)
        opens_line = begin == 0 or self._tokens.kind(begin - 1) == LINE
        if opens_line and not any(each.kind == WORD for each in found) and (above := self._label_above(begin)):
            return Before(
                [*above[1], *found], self._position_after_bullets(above[0]), opens_field=True, opens_text=False
            )
        opens_field = opens_line or self._tokens.text(begin - 1) in _FIELD_ENDS
        opens_text = begin <= self._first_said <= at
        return Before(found, self._position_after_bullets(begin), opens_field=opens_field, opens_text=opens_text)

    def _label_above(self, begin: int) -> tuple[int, Sequence[Token]] | None:
        """The label on the line above, with at most two empty lines between; where it begins, and its tokens."""
        above = begin - 1
        while above >= max(0, begin - 3) and self._tokens.kind(above) == LINE:
            above -= 1
        if self._tokens.kind(above) == LINE:
            return None
        start = self.begin(above + 1)
        label = self.without_brackets(start, above + 1)
        is_line = start == 0 or self._tokens.text(start - 1) in BULLETS
        if not label or not is_line or not (label[-1].text in (":", "=") or self._labels.label(label)):
            return None
        end = self._tokens[above].end
        return start, label if label[-1].text in SEPARATORS else [*label, Token(MARK, ":", end, end)]

    def begin(self, at: int) -> int:
        """The first token of the clause that ends before a token. Bracketed text belongs to the clause."""
        depth, begin = 0, at
        while begin > max(0, at - _FAR):
            before = self._tokens[begin - 1]
            if before.kind == LINE:
                break
            if before.text in (")", "]"):
                depth += 1
            elif before.text in ("(", "["):
                if not depth and not self._is_around_value(begin - 1):
                    break
                depth = max(0, depth - 1)
            elif not depth and self._ends_clause(begin - 1):
                break
            begin -= 1
        return begin

    def _ends_clause(self, at: int) -> bool:
        """Whether a mark ends a clause: no abbreviation's period; a slash only between fields ("6 / Engagement")."""
        text = self._tokens.text(at)
        if text == "/":
            return self._tokens.kind(at + 1) == WORD and not self._tokens.touches(at + 1)
        return text in _CLAUSE_ENDS and not (text == "." and self._tokens.text(at - 1) in _ABBREVIATIONS)

    def _is_around_value(self, at: int) -> bool:
        """Whether a bracket encloses a value and not a remark: after a separator, or at the beginning of a line."""
        before = self._tokens.text(at - 1)
        return (
            before in SEPARATORS or before == "(" or self._tokens.kind(at - 1) == LINE or self._tokens.text(at) == "["
        )

    def without_brackets(self, begin: int, end: int) -> Sequence[Token]:
        return [
            each
            for each in self._tokens[begin:end]
            if (each.text not in _BRACKETS and each.kind != LINE) or not each.text
        ]

    def _position_after_bullets(self, begin: int) -> int:
        """The position in the text where a clause begins, skipping bullets."""
        while begin < self._last and self._tokens.text(begin) in BULLETS:
            begin += 1
        return self._tokens[begin].begin

    def parted(self, before: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token], bool]:
        """A label, what follows it, and whether a separator divides them; without one, trailing articles follow it."""
        for place in range(len(before) - 1, -1, -1):
            if separates(before, place):
                return before[:place], before[place + 1 :], True
        end = len(before)
        while end and words.FILLER in before[end - 1].roles and not self._labels.is_core(before[end - 1]):
            end -= 1
        return before[:end], before[end:], False


def separates(before: Sequence[Token], place: int) -> bool:
    """Whether a token separates a label from its value: ":", "=", "→", a dash, or "is"."""
    each = before[place]
    if place == 0 or each.kind != MARK:
        return place > 0 and words.IS in each.roles
    is_sign = each.text == "-" and place + 1 < len(before) and before[place + 1].begin == each.end
    return each.text in SEPARATORS and not is_sign
