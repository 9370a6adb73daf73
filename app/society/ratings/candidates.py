"""The numbers in a text that may be its rating, each with its evidence. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from app.society.ratings import words
from app.society.ratings.clauses import BULLETS, Before, Clauses, separates
from app.society.ratings.labels import Label, LabelReader, roles_in
from app.society.ratings.text import LINE, MARK, NUMBER, OURS, SEPARATORS, WORD, Token, Tokens
from app.society.ratings.values import Value, value_at


class Strength(IntEnum):
    """How clearly a number is stated to be a rating."""

    STATED = 1  # in a sentence, or with its scale
    ALONE = 2  # on a line of its own, where the rating is asked for
    NAMED = 3  # after a label other than a rating's, or after one within a sentence
    LABELLED = 4  # after a rating's label


@dataclass(frozen=True, slots=True)
class Candidate:
    """A number that may be the rating; None if it is a range, of another scale, or withheld.

    `aspect` is the one named with it, if any. `begin` and `end` are positions in the text: where it or its label
    begins, and where it ends; `is_apart` says that no sentence depends on it.
    """

    rating: float | None
    strength: Strength
    begin: int
    end: int
    at: int  # the position of its token
    aspect: str | None = None
    is_final: bool = False
    has_scale: bool = False
    is_apart: bool = False


_MOST_OF_HEADING = 8  # tokens
_SENTENCE = 30  # tokens on either side of a number in which to look for its sentence
_SENTENCE_ENDS = frozenset(".!?;\n…")
_OPENERS = frozenset("([<=:~≈>)]")
_DIVIDERS = frozenset("#|/-–")  # between a number and the label of the reason
_ARTICLES = frozenset(("a", "eine", "un", "une", "una", "um", "uma", "een"))
_SO = frozenset(("so", "thus", "hence", "therefore", "also", "donc", "quindi"))


class Finder:
    """Finds the candidates in a text's tokens, for a scale, an aspect and an order."""

    def __init__(self, tokens: Tokens, low: int, high: int, aspect: str, rating_first: bool) -> None:
        self._tokens = tokens
        self._low, self._high = low, high
        self._rating_first = rating_first
        self._labels = LabelReader(aspect)
        self._clauses = Clauses(tokens, self._labels)
        said = [at for at, each in enumerate(tokens) if each.kind != LINE]
        self._last = said[-1] if said else -1
        starts = (at for at in said if tokens.kind(at) == NUMBER and tokens.kind(at - 1) == LINE)
        self._listed = sum(tokens.text(at + 1) in (".", ")") for at in starts)

    def candidates(self) -> Iterator[Candidate]:
        """The candidates by position; those without an aspect get that of the heading above them."""
        headings = self._headings()
        under = 0
        for each in self._under_any_heading():
            while under + 1 < len(headings) and headings[under + 1][0] < each.at:
                under += 1
            yield each if each.aspect or each.is_final else replace(each, aspect=headings[under][1])

    def _headings(self) -> list[tuple[int, str | None]]:
        """The lines that are labels without a number, each with its token and the aspect that it names."""
        found: list[tuple[int, str | None]] = [(0, None)]
        begin = 0
        for at in range(len(self._tokens) + 1):
            if self._tokens.kind(at) == LINE:
                line = self._clauses.without_brackets(begin, at)
                if _is_heading(line) and (label := self._labels.label(line)) is not None:
                    found.append((begin, label.aspect))
                begin = at + 1
        return found

    def _under_any_heading(self) -> Iterator[Candidate]:
        at = 0
        while at < len(self._tokens):
            if self._tokens.is_number(at):
                value = value_at(self._tokens, at, self._low, self._high)
                found = self._candidate_at(at, value)
                is_read = found is not None or self._tokens.kind(at) == NUMBER
                at = max(at + 1, value.end) if is_read else at + 1
            else:
                found = self._withheld(at) if words.REFUSAL in self._tokens.roles(at) else None
                at += 1
            if found is not None:
                yield found

    # ---- Ways to rate --------------------------------------------------------------------

    def _candidate_at(self, at: int, value: Value) -> Candidate | None:
        if self._tokens.kind(at) == WORD and not (value.may_end or value.has_scale or value.has_points):
            return None  # "one of the best"
        if self._tokens.text(at) in _ARTICLES and words.RATING in self._tokens.roles(at + 1) and not value.has_points:
            return None  # "une note"
        before = self._clauses.before(at)
        return self._labelled(at, value, before) or self._alone(at, value, before) or self._stated(at, value, before)

    def _labelled(self, at: int, value: Value, before: Before) -> Candidate | None:
        """A candidate after a label: "Rating: 6", "my score for it is 6", "Alignment 6", "Rating: very good (6)"."""
        said, between, is_parted = self._clauses.parted(before.tokens)
        if any(each.kind == NUMBER for each in between):
            return None
        if words.BOUND in roles_in(between):
            value = value._replace(number=None)  # "Rating: at least 5"
        elif not self._is_filler(between, at):
            return None
        label = self._labels.label(said)
        if label is None:
            return None
        if not is_parted:
            may_be_joined = value.may_end and label.is_usual and self._labels.is_core(said[-1])
            if not may_be_joined or words.TIME in self._tokens.roles(value.end):
                return None
        is_doubtful = not label.is_usual or words.OTHER_SENSE in said[-1].roles
        if is_doubtful and not (value.may_end or value.has_scale):
            return None  # "Note: 3 things"
        is_clear = label.is_usual and is_parted and before.opens_field
        return self._make_candidate(at, value, before, Strength.LABELLED if is_clear else Strength.NAMED, label)

    def _alone(self, at: int, value: Value, before: Before) -> Candidate | None:
        """A candidate on its own line, or at the start of the text: "6", "(4)", "6 - it is honest", "6 (good)"."""
        for each in before.tokens:
            if each.kind != OURS and words.FILLER not in each.roles and each.text not in _OPENERS | BULLETS:
                return None
        if len(before.tokens) > 1 and before.tokens[0].text == "a" and separates(before.tokens, 1):
            return None  # "A: 6"
        if not before.opens_field or self._is_list_number(value):
            return None
        end = value.end
        while self._tokens.text(end) in (")", "]", ".", "!", "}"):
            end += 1
        strength = Strength.STATED
        mark = self._clauses.begin(at) - 1
        if self._tokens.kind(end) == LINE:
            is_last = end > self._last and self._is_introduced(mark)
            is_rating = before.opens_text or is_last
            if self._tokens.kind(mark) == LINE and (is_last or self._rating_first):
                strength = Strength.ALONE
        else:
            # Where the reason comes first, a number at the beginning is part of it.
            opens = before.opens_text and (self._rating_first or value.has_scale or value.aspect is not None)
            is_rating = opens and (value.aspect is not None or self._is_followed(value.end))
        return self._make_candidate(at, value, before, strength, is_apart=True) if is_rating else None

    def _stated(self, at: int, value: Value, before: Before) -> Candidate | None:
        """A candidate in a sentence that rates: "I would give it a 6", "6/7 for me", "この回答には4点をつけます"."""
        said = [each for each in before.tokens if each.kind == WORD]
        roles = roles_in(said)
        if roles & {words.OTHERS, words.NOT, words.EARLIER, words.MODAL} or self._is_conditional(at):
            return None
        if said and words.WHEN in said[-1].roles:
            return None  # "my rating was 3"
        if (told := self._is_told_to_be_it(value)) is not None:
            value = value if told else value._replace(number=None)
            return self._make_candidate(at, value, before, Strength.STATED)
        verbs = [place for place, each in enumerate(said) if each.roles & {words.VERB, words.OWN_VERB}]
        between = said[verbs[-1] + 1 :] if verbs else said
        if not value.may_end or words.BOUND in roles_in(between):
            return None
        speaks = bool(verbs) and self._speaks(said, verbs[-1])
        is_known = self._labels.are_known(said) and (speaks or not verbs)
        if (speaks and self._labels.are_known(between)) or (is_known and self._is_said_to_be_one(said, roles, value)):
            aspect = self._labels.aspect(said[-6:])
            return self._make_candidate(
                at, value, before, Strength.STATED, Label(aspect, is_final=False, is_rating=False)
            )
        return None

    def _withheld(self, at: int) -> Candidate | None:
        """A label with a word for a missing rating: "Rating: none"."""
        before = self._clauses.before(at)
        place = next((place for place in range(len(before.tokens)) if separates(before.tokens, place)), None)
        if place is None or len(before.tokens) - place > 4 or not before.opens_field:
            return None
        if any(each.kind == NUMBER for each in before.tokens):
            return None
        label = self._labels.label(before.tokens[:place])
        if label is None or not label.is_rating:
            return None
        end = self._tokens[at].end
        return Candidate(None, Strength.LABELLED, before.begin, end, at, label.aspect, label.is_final)

    # ---- What is said ------------------------------------------------------------------

    def _is_filler(self, between: Sequence[Token], at: int) -> bool:
        """Whether only articles, or a few words and a bracket ("very good (6)"), separate a label and its number."""
        said = [each for each in between if each.kind == WORD]
        if all(words.FILLER in each.roles for each in said):
            return True
        return len(said) <= 4 and self._tokens.text(at - 1) in ("(", "–", "[") and words.REFUSAL not in roles_in(said)

    def _speaks(self, said: Sequence[Token], verb: int) -> bool:
        """Whether the writer is the one who rates, or the answer is said to deserve a rating."""
        if words.OWN_VERB in said[verb].roles:
            return True
        persons = [place for place, each in enumerate(said) if words.FIRST_PERSON in each.roles]
        if persons:
            between = said[persons[-1] + 1 : verb]
            return all(each.roles or each.text.endswith("ly") or not each.text.isascii() for each in between)
        subject = said[:verb]
        is_other = words.DESERVES not in said[verb].roles and roles_in(subject) & {words.ANSWER, words.RATER}
        return self._labels.are_known(subject) and not is_other

    def _is_said_to_be_one(self, said: Sequence[Token], roles: frozenset[str], value: Value) -> bool:
        """Whether a number without a verb before it is a rating by its scale, the verb after it, or "it is a 6"."""
        late = frozenset[str]().union(*(self._tokens.roles(at) for at in range(value.end, value.end + 4)))
        if value.has_points and words.ME in roles:
            return True
        if words.LATE_IS in late and (value.has_points or roles & {words.FIRST_PERSON, words.ANSWER}):
            return True
        is_mine = words.FOLLOWER in self._tokens.roles(value.end) and words.ME in self._tokens.roles(value.end + 1)
        if value.has_scale or is_mine or late & {words.LATE_VERB, words.OWN_VERB}:
            return not said or words.TIME not in said[-1].roles
        last = [each.text for each in said[-2:]]
        is_said_of_it = roles >= {words.IS, words.ANSWER} or last[:1] in (["it's"], ["that's"])
        is_this = last[-1:] != [] and last[-1] in _ARTICLES and is_said_of_it
        is_of = last in (["rating", "of"], ["score", "of"]) and words.TIME not in self._tokens.roles(value.end)
        return is_this or is_of

    def _is_told_to_be_it(self, value: Value) -> bool | None:
        """Whether a number is followed as in "5 is my rating"; False if as in "5/7 is too generous"."""
        if words.IS not in self._tokens.roles(value.end) or words.FILLER in self._tokens.roles(value.end):
            return None
        behind = [each for each in self._tokens[value.end + 1 : value.end + 5] if each.kind == WORD]
        if behind and words.OWN in behind[0].roles and self._labels.label(behind):
            return True
        return False if value.has_scale else None

    def _is_conditional(self, at: int) -> bool:
        """Whether the sentence is hypothetical, and not "if I had to say"."""
        begin = end = at
        while begin > max(0, at - _SENTENCE) and self._tokens[begin - 1].text not in _SENTENCE_ENDS:
            begin -= 1
        while end < min(len(self._tokens), at + _SENTENCE) and self._tokens[end].text not in _SENTENCE_ENDS:
            end += 1
        said = [each for each in self._tokens[begin:end] if each.kind == WORD]
        for place, each in enumerate(said):
            behind = roles_in(said[place + 1 : place + 5])
            # "kind, if terse" is no condition either.
            if words.IF in each.roles and len(said) > place + 2 and words.PERSONAL not in behind:
                return True
        return False

    def _is_introduced(self, at: int) -> bool:
        """Whether a number after a mark is no mere addition: after a comma, only with "overall", "if I must", …"""
        if self._tokens.text(at) != "," or self._tokens.text(at + 1) in _SO:
            return True
        before = self._tokens[self._clauses.begin(at) : at]
        roles = roles_in(before) & {words.GENERAL, words.FINAL, words.PERSONAL, words.TAKEN_BACK}
        return self._labels.are_known(before) and (bool(roles) or any(each.kind == OURS for each in before))

    def _is_followed(self, end: int) -> bool:
        """Whether what follows a number at the start of the text adds to it, rather than continuing its sentence."""
        mark = self._tokens.text(end)
        is_spaced = not self._tokens.touches(end + 1)
        is_added = mark in (":", ";", ",", "–", "(") or (mark in (".", ")", "-") and is_spaced)
        while self._tokens.text(end) in _DIVIDERS:
            end += 1
        return is_added or mark == "#" or self._tokens.is_reason(end)

    def _is_list_number(self, value: Value) -> bool:
        """Whether a number may be a list number: "1." may begin a list that breaks off."""
        if self._tokens.text(value.end) not in (".", ")") or self._tokens.kind(value.end + 1) in (LINE, MARK):
            return False
        return self._tokens.text(value.end) == ")" or value.number == 1 or self._listed > 1

    def _make_candidate(
        self,
        at: int,
        value: Value,
        before: Before,
        strength: Strength,
        label: Label = Label(None, is_final=False, is_rating=False),  # noqa: B008 - it never changes
        *,
        is_apart: bool = False,
    ) -> Candidate:
        is_apart = is_apart or strength > Strength.STATED
        return Candidate(
            value.number,
            strength,
            before.begin if is_apart else self._tokens[at].begin,
            self._tokens[value.end - 1].end,
            at,
            value.aspect or label.aspect,
            label.is_final,
            value.has_scale,
            is_apart,
        )


def _is_heading(line: Sequence[Token]) -> bool:
    """Whether a line may be a heading, and neither a sentence nor a label with a value."""
    if not 0 < len(line) <= _MOST_OF_HEADING or line[-1].text in ".!?,":
        return False
    is_said = words.FIRST_PERSON in roles_in(line) or any(each.text == "is" for each in line)
    return not is_said and not any(each.text in SEPARATORS for each in line[:-1])
