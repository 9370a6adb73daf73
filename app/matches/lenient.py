"""Lenient reading of moves that a model has wrapped: the wrapping is removed layer by layer, unless in doubt. Pure.

A layer is around the whole text or in front of it: invisible characters at the ends, a code fence, bold, italics or
quotes, the speaker's label; or it is around the bracketed tag with which a move begins. What is left has to be a move
by the game's own `parse`, and the only one: no other line of it may be a move, and if the text with one layer less
removed is a move too, both have to be the same to the judge unless they differ in marks alone. The text inside a move
is not changed.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from app.games.base import Event, Game
from app.matches.invisible import stripped

_MOST_LAYERS = 6
_PAIRS = (
    ("***", "***"), ("**", "**"), ("*", "*"), ("___", "___"), ("__", "__"), ("_", "_"), ("``", "``"), ("`", "`"),
    ('"', '"'), ("'", "'"), ("＂", "＂"), ("“", "”"), ("„", "“"), ("„", "”"), ("”", "”"), ("‘", "’"), ("‚", "‘"),
    ("‚", "’"), ("’", "’"), ("«", "»"), ("»", "«"), ("‹", "›"), ("›", "‹"), ("「", "」"), ("『", "』"), ("《", "》"),
    ("〈", "〉"),
)  # fmt: skip
_OUTER = frozenset(mark for pair in _PAIRS for mark in (pair[0][0], pair[1][-1]))
_EMPHASIS = "*_"
_NO_WORDS = re.compile(r"[\W_]+")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*+(?P<language>[\w+#.-]*)[ \t]*\n")  # the line that opens a fence
_FENCED_LINE = re.compile(r"(`{3,})(?P<inside>[^`\n]+)\1")
_PROSE = frozenset(("", "text", "txt", "plain", "plaintext", "markdown", "md"))  # languages of fences around plain text
_LOOKS_LIKE_CODE = re.compile(r"[{}\[\];=<>\\|]|\w\(|^\s*(?:#|//|\$ )", re.MULTILINE)
_TAG = re.compile(r"(?P<before>(?:[^\w\s\[]|_){1,3})(?P<tag>\[[^\W_][\w -]*\])(?P<after>(?:[^\w\s\]\[(]|_){1,3})")
_ANYBODY = ("assistant", "user", "human", "system", "partner", "opponent", "you", "me", "ai", "bot")
_OWN = ("assistant", "ai")


def read_leniently(game: Game[Any], state: Any, seat: int, text: str) -> Event | None:
    """The move in a text that a model wrapped, with the whole text as its `original`; None if there is nothing to
    remove or the move is in doubt.
    """
    if not _may_be_wrapped(text, game.roles[seat]):
        return None
    whole = read = _parse_move(game, state, seat, text)
    for left in unwrapped(text, game.roles, seat, is_free=whole is not None):
        move = _parse_move(game, state, seat, left)
        if move is None:
            continue
        if _differ(read, move) if read is not None else _has_another(game, state, seat, left):
            return None
        read = move
    return None if read is None or read is whole else replace(read, original=text)


def _parse_move(game: Game[Any], state: Any, seat: int, text: str) -> Event | None:
    parsed = game.parse(state, seat, text)
    return parsed if isinstance(parsed, Event) else None


def _differ(one: Event, other: Event) -> bool:
    """Whether two readings with different words are different moves to the judge."""
    same_words = _NO_WORDS.sub("", one.text) == _NO_WORDS.sub("", other.text)
    return not same_words and (one.kind, dict(one.data)) != (other.kind, dict(other.data))


def _has_another(game: Game[Any], state: Any, seat: int, text: str) -> bool:
    """Whether a further line is a move on its own, wrapped or not; only called for games that do not accept any
    text.
    """
    for line in text.strip().splitlines()[1:]:
        forms = (line, *unwrapped(line, game.roles, seat, is_free=False))
        if any(_parse_move(game, state, seat, form) is not None for form in forms):
            return True
    return False


# ---- Layers -----------------------------------------------------------------------


def _may_be_wrapped(text: str, role: str) -> bool:
    """Whether a text begins or ends as a wrapped one does; most do not, and need no further work."""
    bare = text.strip()
    if not bare:
        return False
    return (
        bare[0] in _OUTER
        or bare[0] in "~#"
        or not (bare[0].isascii() and bare[-1].isascii())
        or _speaker_label_pattern((role, role)).match(bare) is not None
    )


def unwrapped(text: str, roles: tuple[str, str], seat: int, *, is_free: bool) -> Iterator[str]:
    """The text after each further layer is removed.

    `is_free`: the game accepts any text, so that only what surrounds the whole text is a layer.
    """
    left = text.strip()
    for _ in range(_MOST_LAYERS):
        found = _without_layer(left, roles, seat, is_free=is_free)
        if found is None:
            return
        left = found.strip()
        yield left


def _without_layer(text: str, roles: tuple[str, str], seat: int, *, is_free: bool) -> str | None:
    seen = stripped(text)
    if seen != text:
        return seen
    found = _without_label(text, roles, seat) or _without_fence(text, is_free=is_free) or _without_marks(text)
    return found if found is not None or is_free else _without_marks_of_tag(text)


def _without_label(text: str, roles: tuple[str, str], seat: int) -> str | None:
    """The text after the player's own label, if no line after it has anybody's label."""
    label = _speaker_label_pattern(roles).match(text)
    if label is None or " ".join(label["who"].lower().split()) not in _own_labels(roles[seat], seat):
        return None
    rest = text[label.end() :]
    return None if any(_speaker_label_pattern(roles).match(line.strip()) for line in rest.splitlines()) else rest


def _own_labels(role: str, seat: int) -> tuple[str, ...]:
    return (*_OWN, role.lower(), f"{role.lower()} {seat + 1}", f"player {seat + 1}")


@lru_cache
def _speaker_label_pattern(roles: tuple[str, str]) -> re.Pattern[str]:
    """The label of any possible speaker, at the beginning of a line: `Assistant:`, `**Player 1:**`, `[User]:`."""
    named = "|".join(re.escape(name) for name in dict.fromkeys((*_ANYBODY, *(role.lower() for role in roles))))
    who = rf"(?P<who>(?:{named}|player)(?:[ \t]+\d{{1,2}})?)"
    return re.compile(
        rf"(?:\#{{1,6}}[ \t]*)?(?P<mark>\*{{1,3}}|_{{1,3}})?(?P<bracket>\[)?{who}(?(bracket)\])[ \t]*"
        r"(?:[:：](?(mark)(?P=mark))|(?(mark)(?P=mark))[ \t]*[:：])",
        re.IGNORECASE,
    )


def _without_fence(text: str, *, is_free: bool) -> str | None:
    """The text inside the only fence around it. In a game that accepts any text, only prose is unfenced."""
    begin, line = _FENCE.match(text), _FENCED_LINE.fullmatch(text)
    if begin is not None and text.endswith(begin[1], begin.end()):
        inside, language = text[begin.end() : -len(begin[1])].rstrip(), begin["language"]
    elif line is not None:
        inside, language = line["inside"], ""
    else:
        return None
    if text[:3] in inside or (is_free and (language.lower() not in _PROSE or _LOOKS_LIKE_CODE.search(inside))):
        return None
    return inside


def _without_marks(text: str) -> str | None:
    """The text inside one pair of emphasis marks or quotes, if it contains no further ones of that kind."""
    for opening, closing in _PAIRS:
        inside = text[len(opening) : -len(closing)]
        if not (text.startswith(opening) and text.endswith(closing) and len(text) > len(opening + closing)):
            continue
        if opening[0] in _EMPHASIS and inside != inside.strip():
            continue
        within = _APOSTROPHE.sub("", inside)
        if not any(mark in within for mark in (opening[0], closing[0])):
            return inside
    return None


def _without_marks_of_tag(text: str) -> str | None:
    """The text without the marks that are around the bracketed tag with which it begins."""
    found = _TAG.match(text)
    if found is None or (found["before"], found["after"]) not in _PAIRS:
        return None
    return f"{found['tag']}{text[found.end() :]}"
