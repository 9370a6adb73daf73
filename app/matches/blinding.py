"""Which matches experimenters read blinded to players and ending: those of waves that are not frozen.

Lists, match pages, transcripts, the tables of `flask export` and the API apply this. The archive of a study, written by
`flask study export-data`, is the study's own data and contains everything.
"""

from collections.abc import Collection

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from app.matches.figures import is_of_scores, read_figures
from app.matches.filter import MatchFilter, conditions
from app.models import Enrolment, MatchRow, SeatRow, Wave
from app.registry import PERSON

# Sort columns of the match list that reveal who played or how a match ended.
TELLING = ("players", "state", "scores", "lower_score")


def is_blinded() -> ColumnElement[bool]:
    """Whether a person of an unfrozen wave is in the match, for a WHERE over MatchRow. Bots are not people."""
    return MatchRow.id.in_(_blinded_ids())


def blinded_of(session: Session, ids: Collection[str]) -> set[str]:
    """The blinded ones among these matches."""
    return {*session.scalars(_blinded_ids().where(SeatRow.match_id.in_(ids)))}


def blinded_conditions(choice: MatchFilter, sort: str = "") -> list[ColumnElement[bool]]:
    """The choice for a WHERE over MatchRow, without blinded matches if it filters by players or ending, or if the list
    is sorted by those.
    """
    hides = would_reveal(choice) or sort.removeprefix("-") in TELLING
    return [*conditions(choice), *([MatchRow.id.not_in(_blinded_ids())] if hides else [])]


def would_reveal(choice: MatchFilter) -> bool:
    """Whether this filter reveals the players or the ending of a match."""
    reveals = choice.player not in (None, PERSON) or choice.reason is not None or choice.arm is not None
    reveals = reveals or choice.prompt is not None  # a study's condition may lie in what models are told
    if choice.player is not None and choice.role is not None:  # this also reveals who has the other role
        reveals = True
    return reveals or any(is_of_scores(each.name) for each in read_figures(choice.figures or ""))


def _blinded_ids() -> Select[str]:
    unfrozen = (
        select(Enrolment.id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Wave.frozen_at.is_(None), Wave.rehearsal.is_(False))
    )
    return select(SeatRow.match_id).where(SeatRow.enrolment_id.in_(unfrozen))  # uses the index of enrolments
