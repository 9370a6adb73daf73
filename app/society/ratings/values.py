"""The number at a position in a text, and its surroundings that make it no number, or one of several. Pure."""

from typing import NamedTuple

from app.society.ratings import words
from app.society.ratings.text import LINE, MARK, NUMBER, OURS, WORD, Tokens
from app.society.ratings.words import number_words

_CLOSERS = frozenset(".!;,:)]}|#–-{[(…")  # marks after which a clause is over, or something is added to it
_JOINERS = frozenset(("-", "–", "~", "/", "&", "→", "->", "=>", "+", ",", "±", "…"))
_BEFORE = frozenset("$€£¥§^±≤≥<>/") | {"<=", ">="}  # marks before a number that make it something other than a rating
_BEHIND = frozenset("%★€$°±+?≥≤^")
_PARTICLES = frozenset("をにで을를이과로の")  # between a number and its verb
_SENTENCE_ENDS = frozenset(".!;#…")
_AHEAD = 12  # tokens after a number that may name another one
_ARTICLES = 2  # number words below this are articles, too


class Value(NamedTuple):
    """A number as written.

    `number` is None if it is a range, a hedge, or of another scale. `has_scale`: it names the scale; `has_points`: it
    counts points; `may_end`: the clause may end after it. `end` is the token after it, or after its range; `aspect` the
    one named after it ("5 for alignment").
    """

    number: float | None
    has_scale: bool
    has_points: bool
    may_end: bool
    end: int
    aspect: str | None


def value_at(tokens: Tokens, at: int, low: int, high: int, corrections: int = 3) -> Value:
    """The number that begins at a token, on the scale from `low` to `high`, or the number that corrects it."""
    number, end = _number_and_end(tokens, at)
    sign = _sign(tokens, at)
    is_other = _is_part(tokens, at, end) or (sign != 0 and low >= 0)
    if number is not None:
        number, end = _with_half(tokens, number * (sign or 1), end)
    has_scale, has_another, end = _scale_at(tokens, end, high)
    has_points = words.POINTS in tokens.roles(end)
    if has_points:
        end += 1
        if not (has_scale or has_another):
            has_scale, has_another, end = _scale_at(tokens, end, high)
    if corrections and (corrected := _corrected(tokens, end)) is not None:
        return value_at(tokens, corrected, low, high, corrections - 1)
    is_other = is_other or has_another or _is_count(tokens, end, has_scale=has_scale) or _is_one_of_several(tokens, end)
    if is_other or number is None or not low <= number <= high:
        number = None
    return Value(
        number, has_scale, has_points, _may_end(tokens, end), _range_end(tokens, end), _aspect_behind(tokens, end)
    )


# ---- The number itself -------------------------------------------------------------------


def _number_and_end(tokens: Tokens, at: int) -> tuple[float | None, int]:
    """A number and the position of the next token; the number is None for a date, a version or thousands."""
    raw = tokens[at].text
    if tokens[at].kind == WORD:
        return float(number_words()[raw]), at + 1
    whole, _, part = raw.removesuffix("½").replace(",", ".").partition(".")
    if "." in part or len(part) > 2 or len(whole) > 4:
        return None, at + 1
    return float(f"{whole or 0}.{part or 0}") + (0.5 if raw.endswith("½") else 0), at + 1


def _sign(tokens: Tokens, at: int) -> int:
    """-1 or 1 for a sign written directly before a number, and 0 for none."""
    if tokens.text(at - 1) not in ("-", "+") or not tokens.touches(at):
        return 0
    if tokens.touches(at - 1) and tokens.kind(at - 2) != MARK:
        return 0
    return -1 if tokens.text(at - 1) == "-" else 1


def _is_part(tokens: Tokens, at: int, end: int) -> bool:
    """Whether the text next to a number makes it something else ("3rd", "6+", "GPT-4", "$5", "5 %", "≥ 5")."""
    if tokens.text(at - 1) in _BEFORE or tokens.text(end) in _BEHIND:
        return True
    if tokens.text(at - 1) == "+" and tokens.kind(at - 2) == NUMBER:
        return True
    if tokens.kind(at) != NUMBER:
        return False
    if tokens.touches(at):
        if tokens.text(at - 1) == "#":
            return True
        if tokens.kind(at - 1) == WORD and tokens.text(at - 1)[-1:].isascii():
            return True
        if tokens.text(at - 1) in ("-", ".") and tokens.touches(at - 1) and tokens.kind(at - 2) in (WORD, NUMBER):
            return True
    if tokens.touches(end):
        if tokens.text(end) == "-":
            return tokens.touches(end + 1) or tokens.kind(end + 1) == LINE
        is_alphabetic = tokens.kind(end) == WORD and tokens.text(end)[:1] < "\u0600"
        return is_alphabetic and not tokens.roles(end) & {words.POINTS, words.REASON}
    return False


def _with_half(tokens: Tokens, number: float, end: int) -> tuple[float, int]:
    """A number with the half that follows it: "5 1/2", "5 ½", "five and a half", "five point five", "5点半"."""
    if number % 1:
        return number, end
    if [tokens.text(end + place) for place in range(3)] == ["1", "/", "2"]:
        return number + 0.5, end + 3
    if tokens.text(end) == "½":
        return number + 0.5, end + 1
    if words.DECIMAL in tokens.roles(end) and tokens.text(end + 1) in number_words():
        return number + number_words()[tokens.text(end + 1)] / 10, end + 2
    half = end
    while half < end + 2 and words.JOIN in tokens.roles(half) and words.HALF not in tokens.roles(half):
        half += 1
    if words.HALF in tokens.roles(half):
        return number + 0.5, half + 1
    return number, end


def _scale_at(tokens: Tokens, end: int, high: int) -> tuple[bool, bool, int]:
    """Whether a number names the scale ("5/7", "6 out of 7"), or another one, and the token after that."""
    is_open = tokens.text(end) in ("(", "[")
    at = end + is_open
    if words.POINTS in tokens.roles(at) and words.OUT_OF in tokens.roles(at + 1):
        at += 1
    is_slash = tokens.text(at) == "/"
    is_of = words.OUT_OF in tokens.roles(at)
    if is_slash or is_of:
        at += 2 if tokens.text(at) == "out" else 1
        while is_of and words.LARGEST in tokens.roles(at):
            at += 1
    elif tokens.kind(at) != OURS:
        return False, False, end
    if tokens.kind(at) == OURS:
        return True, False, at + 1 + (is_open and tokens.text(at + 1) in (")", "]"))
    if not tokens.is_number(at):
        return False, (is_slash and tokens.kind(at) != WORD) or tokens.text(end) == "of", end
    top, behind = _number_and_end(tokens, at)
    is_date = tokens.touches(behind) and (
        tokens.text(behind) in ("/", "%") or (tokens.kind(behind) == WORD and tokens.text(behind).isascii())
    )
    behind += is_open and tokens.text(behind) in (")", "]")
    return top == high and not is_date, top != high or is_date, behind


# ---- What is behind it -------------------------------------------------------------------


def _range_end(tokens: Tokens, end: int) -> int:
    """The token after the last number of a range."""
    while (joined := _joined_number_position(tokens, end)) is not None:
        end = joined + 1
    return end


def _joined_number_position(tokens: Tokens, end: int) -> int | None:
    """The token of the other number of "3-4", "5 or 6", "5, maybe 6"; None for a number without such a partner."""
    at, is_joined = end, False
    while at < end + 4 and not tokens.is_number(at):
        if (
            tokens.text(at) in _JOINERS
            or tokens.roles(at) & {words.RANGE, words.MAYBE}
            or (tokens.text(at) == "|" and tokens.touches(at) and tokens.touches(at + 1))
        ):
            is_joined = True
        elif not (tokens.text(at) == "(" and at == end) and not (is_joined and words.JOIN in tokens.roles(at)):
            return None
        at += 1
    if not tokens.is_number(at) or not (is_joined or tokens.kind(end) == NUMBER):
        return None
    mark = tokens.text(at - 1)
    if tokens.kind(at) == WORD and (number_words()[tokens.text(at)] < _ARTICLES or mark == ","):
        return None
    if mark in ("-", "–", ",") and tokens.kind(at + 1) == WORD and not (tokens.touches(at - 1) and tokens.touches(at)):
        # "5 - 2 facts are wrong" names no range.
        is_of = words.OUT_OF in tokens.roles(at + 1) and tokens.is_number(at + 2)
        is_listed = words.RANGE in tokens.roles(at + 1) and tokens.text(at + 1) != "of"
        return at if is_of or is_listed or tokens.roles(at + 1) & {words.POINTS, words.FOLLOWER, words.REASON} else None
    return at


def _corrected(tokens: Tokens, end: int) -> int | None:
    """The token of the number that corrects a number in the same sentence: "3, no, 5", "3 (sorry, 5)"."""
    is_taken_back = False
    for at in range(end, min(end + _AHEAD, len(tokens))):
        roles = tokens.roles(at)
        if (
            tokens.kind(at) == LINE
            or tokens.text(at) in _SENTENCE_ENDS
            or roles & {words.REASON, words.MAYBE, words.RATING, words.FIRST_PERSON}
        ):
            return None
        is_taken_back = is_taken_back or _takes_back(tokens, at)
        if tokens.is_number(at) and not (tokens.kind(at) == WORD and number_words()[tokens.text(at)] < _ARTICLES):
            return at if is_taken_back and _may_end(tokens, at + 1) else None
    return None


def _takes_back(tokens: Tokens, at: int) -> bool:
    """Whether a word takes back what precedes it, unlike "rather than"."""
    return words.TAKEN_BACK in tokens.roles(at) and not tokens.roles(at + 1) & {words.BOUND, words.OUT_OF}


def _is_one_of_several(tokens: Tokens, end: int) -> bool:
    """Whether another number is given with this one, as an alternative, a part of a range, or for another time."""
    is_range = _joined_number_position(tokens, end) is not None or _is_between(tokens, end)
    if is_range or words.WHEN in tokens.roles(end) or tokens.text(end) == "?":
        return True
    if words.EARLIER in tokens.roles(end + (tokens.text(end) == "at")) or _is_conditional(tokens, end):
        return True  # "2 at first, 6 later"
    hedge = end + (tokens.text(end) == ",")
    if [tokens.text(hedge + place) for place in range(3)] == ["give", "or", "take"]:
        return True
    if tokens.text(end) == ":" and tokens.kind(end + 1) == NUMBER and tokens.touches(end + 1):
        return True
    if words.RANGE in tokens.roles(end) and (
        words.BOUND in tokens.roles(end + 1) or tokens.text(end + 1) in ("so", "up", "better")
    ):
        return True
    is_hedged = False
    for at in range(end, min(end + _AHEAD, len(tokens))):
        roles = tokens.roles(at)
        if tokens.kind(at) == LINE or tokens.text(at) in _SENTENCE_ENDS or words.REASON in roles:
            return False
        is_hedged = is_hedged or words.MAYBE in roles or _takes_back(tokens, at)
        if (
            words.TAKEN_BACK in roles
            and at > end
            and tokens.text(at + 1) == "."
            and words.FOLLOWER in tokens.roles(at - 1)
        ):
            return True  # "a 6, but no."
        if tokens.is_number(at) and _is_alone(tokens, at) and (is_hedged or _is_possible(tokens, at)):
            return True
    return False


def _is_between(tokens: Tokens, end: int) -> bool:
    """Whether a number begins a range whose word comes after it: "4 ile 5 arası", "4と5の間", "4 और 5 के बीच"."""
    other = next((at for at in range(end, end + 4) if tokens.is_number(at)), None)
    if other is None or any(tokens.kind(at) != WORD for at in range(end, other)):
        return False
    behind = frozenset[str]().union(*(tokens.roles(at) for at in range(other + 1, other + 4)))
    return words.BETWEEN in behind


def _is_conditional(tokens: Tokens, end: int) -> bool:
    """Whether a number applies under a condition: "4 if it is a joke", and not "5, if a bit curt"."""
    at = end + (tokens.text(end) in (",", "(", "["))
    if words.IF not in tokens.roles(at):
        return False
    behind = frozenset[str]().union(*(tokens.roles(place) for place in range(at + 1, at + 5)))
    return words.PERSONAL not in behind and words.CONCEDED not in tokens.roles(at + 1)


def _is_possible(tokens: Tokens, at: int) -> bool:
    """Whether a number is said to be also right: "a 5 is possible", "4 would also be fine"."""
    return any(words.MAYBE in tokens.roles(place) or tokens.text(place) == "also" for place in range(at + 1, at + 4))


def _is_alone(tokens: Tokens, at: int) -> bool:
    """Whether a number stands alone, and does not count something."""
    if tokens.kind(at) == WORD and number_words()[tokens.text(at)] < _ARTICLES:
        return False
    roles = tokens.roles(at + 1)
    return tokens.kind(at + 1) != WORD or bool(
        roles & {words.FOLLOWER, words.POINTS, words.MAYBE, words.IS, words.MODAL} or tokens.text(at + 1) == "would"
    )


def _is_count(tokens: Tokens, end: int, *, has_scale: bool) -> bool:
    """Whether the number counts something else than points ("5 minutes", "6个", "4 stars", "6 out of 7 needs")."""
    roles = tokens.roles(end)
    if words.UNIT in roles:
        return not (has_scale and words.STARS in roles)
    is_unknown = tokens.kind(end) == WORD and not roles and tokens.text(end).isascii()
    return has_scale and is_unknown and tokens.text(end - 2) != "/"


def _may_end(tokens: Tokens, end: int) -> bool:
    if tokens.text(end) in _PARTICLES:
        end += 1
    kind, roles = tokens.kind(end), tokens.roles(end)
    if kind == MARK:
        is_hyphen = tokens.text(end) == "-" and tokens.touches(end) and tokens.kind(end + 1) == WORD
        return tokens.text(end) in _CLOSERS and not is_hyphen
    follows = (words.FOLLOWER, words.REASON, words.LATE_VERB, words.LATE_IS, words.OWN_VERB, words.VERB, words.STARS)
    return kind in (LINE, OURS) or not roles.isdisjoint(follows)


def _aspect_behind(tokens: Tokens, end: int) -> str | None:
    """The aspect named after a number: "5 for alignment", "5 (alignment)", "5 on engagement"."""
    at = end
    while at < end + 3 and (tokens.text(at) in ("(", "[") or words.OF_WHAT in tokens.roles(at)):
        at += 1
    if at == end or tokens.text(at + 1) in (":", "=") or tokens.is_number(at + 1):
        return None
    return words.aspect_of(tokens.text(at))
