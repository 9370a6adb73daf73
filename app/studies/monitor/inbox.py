"""The inbox of reports: what people reported in all waves, how it stands, and who has reported before."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, String, cast, func, select
from sqlalchemy.orm import Session

from app.models import Enrolment, Participant, Study, StudyEvent, Wave
from app.studies.reports import NEW, REPORTS, marks

_MOST = 500  # reports that are listed


class InboxReport(NamedTuple):
    """A report of a person. `state` is new, read or handled, `by` who said so.

    `number` counts the person's reports up to this one, in all waves and studies, and `elsewhere` those in other waves.
    """

    event: StudyEvent
    wave: Wave
    study: str
    code: str
    ending: str | None
    state: str
    by: str
    number: int
    elsewhere: int

    @property
    def reason(self) -> str:
        """What went wrong; reports of before have no such answer."""
        return str(self.event.body.get("reported", "other"))

    @property
    def text(self) -> str:
        """In the person's words."""
        return str(self.event.body.get("text", ""))

    @property
    def match(self) -> str | None:
        """The match that it is about."""
        found: str | None = self.event.body.get("match")
        return found


def inbox(session: Session, wave_id: int | None = None, *, state: str | None = None) -> Sequence[InboxReport]:
    """The reports of a wave, or of all, new ones first and the latest before others; `state` chooses."""
    rows = (
        select(StudyEvent, Wave, Study.name, Participant.code, Enrolment.ending, _person())
        .join(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == StudyEvent.wave_id)
        .join(Study, Study.id == Wave.study_id)
        .where(StudyEvent.kind.in_(REPORTS))
        .order_by(StudyEvent.id.desc())
        .limit(_MOST)
    )
    if wave_id is not None:
        rows = rows.where(StudyEvent.wave_id == wave_id)
    standing, before = marks(session, wave_id), _by_person(session)
    found = []
    for event, wave, study, code, ending, person in session.execute(rows):
        own = before[person]
        how, by = standing.get(event.id, (NEW, ""))
        number = sum(number <= event.id for number, _ in own)
        elsewhere = sum(other != wave.id for _, other in own)
        found.append(InboxReport(event, wave, study, code, ending, how, by, number, elsewhere))
    return sorted((each for each in found if state in (None, each.state)), key=lambda each: each.state != NEW)


def unread(session: Session, wave_id: int | None = None) -> int:
    """How many reports nobody has read."""
    events = select(StudyEvent.id).where(StudyEvent.kind.in_(REPORTS))
    if wave_id is not None:
        events = events.where(StudyEvent.wave_id == wave_id)
    numbers = session.scalars(events).all()
    standing = marks(session, wave_id)
    return sum(standing.get(number, (NEW, ""))[0] == NEW for number in numbers)


def waves_with_reports(session: Session) -> Sequence[tuple[Wave, str, int]]:
    """The waves from which there are reports, with their studies' names and how many there are."""
    rows = (
        select(Wave, Study.name, func.count(StudyEvent.id))
        .join(Study, Study.id == Wave.study_id)
        .join(StudyEvent, StudyEvent.wave_id == Wave.id)
        .where(StudyEvent.kind.in_(REPORTS))
        .group_by(Wave.id, Study.name)
        .order_by(Wave.id.desc())
    )
    return [(wave, study, count) for wave, study, count in session.execute(rows)]


def _person() -> ColumnElement[str]:
    """What is the same of one person in all studies; of who came without an id, in one."""
    return func.coalesce(Participant.person_hash, cast(Participant.id, String))


def _by_person(session: Session) -> Mapping[str, list[tuple[int, int]]]:
    """The reports of each person: their numbers, with the waves that they are from."""
    rows = (
        select(_person(), StudyEvent.id, StudyEvent.wave_id)
        .join(Enrolment, Enrolment.participant_id == Participant.id)
        .join(StudyEvent, StudyEvent.enrolment_id == Enrolment.id)
        .where(StudyEvent.kind.in_(REPORTS))
    )
    found = defaultdict[str, list[tuple[int, int]]](list)
    for person, number, wave_id in session.execute(rows):
        found[person].append((number, wave_id))
    return found
