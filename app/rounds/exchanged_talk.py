"""A control of rounds: models read the messages of other matches in place of their partners' messages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.core.validation import whole_number
from app.games.base import Event, View
from app.jobs import states
from app.jobs.holding import hold
from app.matches.events import from_json
from app.models import EventRow, MatchRow, RoundRow
from app.rounds.job import ROUND

_MESSAGE = "message"

Messages = tuple[Sequence[str], Sequence[str]]  # in a match, by seat


def checked(session: Session, number: str, game: str) -> int:
    """The number of a finished round of that game. Raises Invalid, and Conflict if it was removed.

    While matches are being played, a worker that resumes would read other messages than the one before it; and with
    some matches left out, the next match might not be another game.
    """
    found = whole_number(number, "talk_of", 1, 2**31 - 1)
    row = session.get(RoundRow, found)
    if row is None or row.game != game or row.status != states.DONE:
        expected = Phrase("the number of a round of %(game)s that is done", game=game)
        raise Invalid("talk_of", expected=expected, got=found)
    hold(session, [row])
    return found


def messages_of(session: Session, round_id: int) -> list[Messages]:
    """The messages of each match of a finished round, by seat, in order but starting with the next game.

    With swapped seats, two matches are one game. Raises Invalid for a round without two games, whose models would read
    messages about their own, and Conflict for one that was removed.
    """
    row = ROUND.get(session, round_id)
    ROUND.check_there(row)
    step = 2 if row.swap_seats else 1
    over = select(MatchRow.id).where(MatchRow.round_id == round_id, MatchRow.status == "over").order_by(MatchRow.index)
    found: Mapping[str, tuple[list[str], list[str]]] = {match: ([], []) for match in session.scalars(over)}
    log = (
        select(EventRow.match_id, EventRow.body)
        .join(MatchRow, MatchRow.id == EventRow.match_id)
        .where(MatchRow.round_id == round_id, EventRow.kind == _MESSAGE)
        .order_by(EventRow.match_id, EventRow.seq)
    )
    for match, body in session.execute(log):
        event = from_json(body)
        if match in found and isinstance(event, Event):
            found[match][event.seat].append(event.text)
    talk: list[Messages] = [*found.values()]
    if len(talk) <= step:
        raise Invalid("talk_of", expected=Phrase("a round with two different games that are over"), got=round_id)
    return talk[step:] + talk[:step]


def exchanged(talk: Sequence[Messages], view: View, index: int) -> View:
    """The view in the match with that index, with messages of another match in place of the partner's.

    `talk` is what `messages_of` returns. Messages without a counterpart in the other match stay as they are.
    """
    said = iter(talk[index % len(talk)][1 - view.seat])
    return replace(
        view,
        transcript=tuple(
            entry._replace(text=next(said, entry.text)) if entry.by == "partner" and entry.kind == _MESSAGE else entry
            for entry in view.transcript
        ),
    )
