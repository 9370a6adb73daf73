"""Finds the failed attempts of models in the logs of published self-play: in the chat, or in a model's output. Pure.

The published chats of a seat omit them; a saved live context has them as a message of the seat and the correction it
got. The seat's text file always has them, each followed by a line with the error.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.datasets.lm_folder import ERROR, Message, header
from app.games.base import JSON

_CORRECTION = re.compile(r'An error occurred\..*?(?:"(?P<reason>.*)"\s*)?', re.DOTALL)


class Attempt(NamedTuple):
    """A refused text of a seat and the reason given to it."""

    seat: int
    text: str
    reason: str


def take_corrections(messages: Sequence[Message]) -> tuple[list[Message], dict[int, list[tuple[str, str]]]]:
    """The chat without failed attempts, and these as (text, reason) by the place of the move that followed them."""
    kept: list[Message] = []
    found: dict[int, list[tuple[str, str]]] = {}
    for message in messages:
        correction = _CORRECTION.fullmatch(message["content"]) if message["role"] == "user" else None
        if correction and kept and kept[-1]["role"] == "assistant":
            failed = kept.pop()["content"]
            reason = correction["reason"] or message["content"]
            found.setdefault(len(kept), []).append((failed, reason))
        else:
            kept.append(message)
    return kept, found


def attempts_in(
    texts: Sequence[str | None], moves: Sequence[Mapping[int, str]], config: JSON
) -> dict[int, list[Attempt]]:
    """The failed attempts in both seats' text files, by the place of the move that followed them.

    `moves` are each seat's own by their place. A file in which the accepted moves are not found in sequence gives none.
    """
    found: dict[int, list[Attempt]] = {}
    for seat, text in enumerate(texts):
        if text is not None:
            found.update(_of_seat(seat, text.removeprefix(f"{header(config, seat)}\n"), moves[seat]))
    return found


def _of_seat(seat: int, text: str, moves: Mapping[int, str]) -> dict[int, list[Attempt]]:
    """The failed attempts of one seat; each part of the text before an error has accepted moves and then the
    attempt.
    """
    places = list(moves)
    found: dict[int, list[Attempt]] = {}
    part: list[str] = []
    done = 0
    for line in text.split("\n"):
        if not line.startswith(ERROR):
            part.append(line)
            continue
        done, rest = _skip_accepted(part, [moves[at] for at in places], done)
        if done == len(places) or not rest:
            return {}
        failed = "\n".join(rest)
        found.setdefault(places[done], []).append(Attempt(seat, failed, line.removeprefix(ERROR)))
        part = []
    return found


def _skip_accepted(part: list[str], moves: Sequence[str], done: int) -> tuple[int, list[str]]:
    """The number of a seat's moves accepted up to the end of a part, and the lines of the attempt after them.

    A model's text continues after an accepted move where that was cut off, at an end marker or after a proposal's line.
    """
    while done < len(moves):
        length = moves[done].count("\n") + 1
        if len(part) <= length or not "\n".join(part[:length]).startswith(moves[done]):
            break
        part, done = part[length:], done + 1
    return done, part
