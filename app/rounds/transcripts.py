"""The matches of a round as lines, filtered by how they ended and found by index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, false, or_, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, either
from app.core.validation import whole_number
from app.games import find_game
from app.matches.counts import endings_of_rounds
from app.matches.filter import is_over
from app.models import MatchRow, RoundRow

PAGE = 50  # matches on a page
LATEST = 10  # matches that a round's page shows while the round is played
AS_GIVEN, SWAPPED = "given", "swapped"
NAMES = ("reason", "least", "most", "refused", "order")


@dataclass(frozen=True, slots=True)
class TranscriptFilter:
    """Conditions on matches; None matches any. A seat's score lies between `least` and `most`.

    `refused`: whether moves in it were refused; `order`: whether the round's first model sits in the first seat.
    """

    reason: str | None = None
    least: float | None = None
    most: float | None = None
    refused: bool | None = None
    order: str | None = None


ALL = TranscriptFilter()


def read_wanted(raw: Mapping[str, str]) -> TranscriptFilter:
    """A filter from an address. Raises Invalid."""
    given = {name: raw.get(name, "").strip() for name in NAMES}
    if len(given["reason"]) > 40 or not given["reason"].isprintable():
        raise Invalid("reason", expected=Phrase("how a match ended"), got=given["reason"])
    if given["refused"] not in ("", "yes", "no"):
        raise Invalid("refused", expected=Phrase("yes or no"), got=given["refused"])
    if given["order"] not in ("", AS_GIVEN, SWAPPED):
        raise Invalid(
            "order",
            expected=either((AS_GIVEN, SWAPPED)),
            got=given["order"],
        )
    return TranscriptFilter(
        reason=given["reason"] or None,
        least=_read_number("least", given["least"]),
        most=_read_number("most", given["most"]),
        refused=given["refused"] == "yes" if given["refused"] else None,
        order=given["order"] or None,
    )


def read_after(text: str) -> int | None:
    """The index of the match after which a page begins. Raises Invalid."""
    return whole_number(text, "after", 0, 2**31 - 1) if text else None


def wanted_matches(
    session: Session, round_id: int, wanted: TranscriptFilter, swap_seats: bool, after: int | None = None
) -> tuple[Sequence[MatchRow], int | None]:
    """A page of a round's matches by index, and the index after which the next page begins, if there is one."""
    statement = select(MatchRow).where(MatchRow.round_id == round_id, *_filter_conditions(wanted, swap_seats))
    if after is not None:
        statement = statement.where(MatchRow.index > after)
    rows = session.scalars(statement.order_by(MatchRow.index).limit(PAGE + 1)).all()
    return rows[:PAGE], rows[PAGE - 1].index if len(rows) > PAGE else None


def latest_over(session: Session, round_id: int) -> Sequence[MatchRow]:
    """The matches of a round that ended last, among those with the highest indices, as matches begin in their order."""
    begun = (
        select(MatchRow.id)
        .where(MatchRow.round_id == round_id, is_over())
        .order_by(MatchRow.index.desc())
        .limit(20 * LATEST)
    )
    latest = select(MatchRow).where(MatchRow.id.in_(begun)).order_by(MatchRow.ended_at.desc(), MatchRow.index.desc())
    return session.scalars(latest.limit(LATEST)).all()


def endings(session: Session, row: RoundRow) -> list[str]:
    """How matches of a round have ended so far, in the game's words: its outcomes in their order, then all others."""
    order = {reason: place for place, reason in enumerate(find_game(row.game).outcomes)}
    ended = endings_of_rounds(session, [row.id])[row.id]
    reasons = {each.reason for each in ended if each.reason is not None and each.matches}
    return sorted(reasons, key=lambda reason: (order.get(reason, len(order)), reason))


def _filter_conditions(wanted: TranscriptFilter, swap_seats: bool) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.reason is not None:
        found.append(MatchRow.reason == wanted.reason)
    if wanted.least is not None or wanted.most is not None:
        seats = [_column_within_limits(column, wanted) for column in (MatchRow.utility_0, MatchRow.utility_1)]
        found.append(or_(*seats))
    if wanted.refused is not None:
        found.append(MatchRow.violations > 0 if wanted.refused else MatchRow.violations == 0)
    if wanted.order is not None:
        swapped = MatchRow.index % 2 == 1 if swap_seats else false()
        found.append(swapped if wanted.order == SWAPPED else ~swapped)
    return found


def _column_within_limits(column: Any, wanted: TranscriptFilter) -> ColumnElement[bool]:
    limits = [column >= wanted.least] if wanted.least is not None else []
    limits += [column <= wanted.most] if wanted.most is not None else []
    return and_(*limits)


def _read_number(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
        if not -1000 <= value <= 1000:
            raise ValueError
    except ValueError:
        raise Invalid(name, expected=Phrase("a score, such as 6 or -1.5"), got=text) from None
    return value
