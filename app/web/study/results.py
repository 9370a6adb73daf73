"""What people see of the matches that they have played."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.matches.engine import ABORTED
from app.matches.filter import is_over
from app.models import EventRow, MatchRow, SeatRow
from app.studies.checks import OBJECTIVE
from app.studies.progress import StudyProgress
from app.studies.texts import weight_of


class PlayedGame(NamedTuple):
    """A finished match. `own` are the person's own points, `score` what is paid for; None if it was aborted."""

    match_id: str
    number: int | None  # from 1; None: practice
    reason: str
    own: float | None
    partner: float | None
    score: float | None
    agreed: bool | None

    @property
    def broke_off(self) -> bool:
        """Whether a model or the server could not continue."""
        return self.reason == ABORTED


def played_games(session: Session, progress: StudyProgress) -> Sequence[PlayedGame]:
    """The matches of an enrolment that are over, in the order in which they were played."""
    rows = session.execute(
        select(MatchRow, SeatRow.seat, EventRow.body)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .outerjoin(EventRow, (EventRow.match_id == MatchRow.id) & (EventRow.kind == "ended"))
        .where(SeatRow.enrolment_id == progress.enrolment.id, is_over())
        .order_by(MatchRow.started_at, MatchRow.id)
    )
    return [_played(row, seat, body or {}) for row, seat, body in rows]


def shows_bonus(progress: StudyProgress) -> bool:
    """Whether the bonus so far shows no more than the feedback that the design gives."""
    feedback = progress.design.same_for_all.feedback
    if feedback == "none":
        return False
    if feedback == "both" or OBJECTIVE not in progress.design.conditions:
        return True
    planned = (progress.enrolment.plan or {"matches": []})["matches"]
    return all(weight_of(progress.design, each["condition"]) == 0 for each in planned)


def points_text(points: float | None) -> str:
    """Points as text, without a meaningless decimal."""
    return "" if points is None else f"{Decimal(str(points)).normalize():f}".replace("-", "\N{MINUS SIGN}")


def _played(row: MatchRow, seat: int, body: dict[str, Any]) -> PlayedGame:
    scores = body.get("facts", {}).get("scores")
    score = (row.utility_0, row.utility_1)[seat]
    own = score if scores is None else scores[seat]
    partner = None if scores is None else scores[1 - seat]
    number = None if row.position is None else row.position + 1
    if row.reason == ABORTED:
        own = partner = score = None
    return PlayedGame(row.id, number, row.reason or "", own, partner, score, row.agreed)
