"""The inbox of reports: what people reported in all waves, which of it is read, and who has reported before."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, String, case, cast, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.models import Enrolment, Participant, Study, StudyEvent, Wave
from app.studies.reports import MARKS, NEW, REPORT

MOST = 500  # reports that a page lists
OF_EACH = 3  # of one person, so that nobody fills it alone
_STATES = {kind: state for state, kind in MARKS.items()}


class InboxReport(NamedTuple):
    """A report of a person. `state` is new, read or handled, `by` who said so.

    `number` counts the person's reports up to this one, in all waves and studies, and `elsewhere` those in other waves.
    `further` are those of the person that follow this one and are left out.
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
    further: int

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


def inbox(
    session: Session,
    wave_id: int | None = None,
    *,
    state: str | None = None,
    each: int | None = None,
    most: int | None = MOST,
) -> Sequence[InboxReport]:
    """The reports of a wave, or of all waves of people, new ones first and the latest before others.

    `state` chooses; of these the last `each` of a person that are new, and as many that are not; of these the first
    `most`. None: all.
    """
    chosen, mark = _chosen_reports(wave_id, state)
    is_new = case((_is_new(mark), 0), else_=1)
    alike = (_person(), is_new)
    place = func.row_number().over(partition_by=alike, order_by=StudyEvent.id.desc()).label("place")
    count = func.count().over(partition_by=alike).label("of")
    placed = chosen.with_only_columns(StudyEvent.id, place, count).subquery()
    columns = (StudyEvent, Wave, Study.name, Participant.code, Enrolment.ending, _person(), mark)
    wanted: tuple[Any, ...] = (*columns, placed.c.place, placed.c.of)
    rows = chosen.join(placed, placed.c.id == StudyEvent.id).with_only_columns(*wanted)
    if each is not None:
        rows = rows.where(placed.c.place <= each)
    rows = rows.order_by(is_new, StudyEvent.id.desc())
    before = _by_person(session)
    found = []
    for event, wave, study, code, ending, person, marked, at, of in session.execute(rows.limit(most)):
        own = before[person]
        how, by = (NEW, "") if marked is None else (_STATES[marked.kind], marked.body["by"])
        number = sum(number <= event.id for number, _ in own)
        elsewhere = sum(other != wave.id for _, other in own)
        further = of - at if at == each else 0
        found.append(InboxReport(event, wave, study, code, ending, how, by, number, elsewhere, further))
    return found


def how_many(session: Session, wave_id: int | None = None, *, state: str | None = None) -> int:
    """How many reports `inbox` chooses, however many it lists."""
    chosen, _ = _chosen_reports(wave_id, state)
    return session.scalar(chosen.with_only_columns(func.count(StudyEvent.id))) or 0


def unread(session: Session, wave_id: int | None = None) -> int:
    """How many reports nobody has read."""
    return how_many(session, wave_id, state=NEW)


def _chosen_reports(wave_id: int | None, state: str | None) -> tuple[Select[Any], type[StudyEvent]]:
    """The reports that are asked for, each with its last mark, if it has one. Those of bots only by their wave."""
    mark = aliased(StudyEvent)
    marks = select(StudyEvent.id, StudyEvent.body["report"].as_integer().label("report")).where(
        StudyEvent.kind.in_(MARKS.values())
    )
    if wave_id is not None:
        marks = marks.where(StudyEvent.wave_id == wave_id)
    each = marks.subquery()
    last = select(each.c.report, func.max(each.c.id).label("id")).group_by(each.c.report).subquery()
    rows = (
        select(StudyEvent.id)
        .join(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == StudyEvent.wave_id)
        .join(Study, Study.id == Wave.study_id)
        .outerjoin(last, last.c.report == StudyEvent.id)
        .outerjoin(mark, mark.id == last.c.id)
        .where(StudyEvent.kind == REPORT)
    )
    rows = rows.where(Wave.rehearsal.is_(False) if wave_id is None else Wave.id == wave_id)
    if state is not None:
        rows = rows.where(_is_new(mark) if state == NEW else mark.kind == MARKS.get(state, ""))
    return rows, mark


def _is_new(mark: type[StudyEvent]) -> ColumnElement[bool]:
    return or_(mark.id.is_(None), mark.kind == MARKS[NEW])


def waves_with_reports(session: Session, chosen: int | None = None) -> Sequence[tuple[Wave, str, int]]:
    """The waves from which there are reports, with their studies' names and how many there are.

    Waves of bots are left out, but for the chosen one.
    """
    rows = (
        select(Wave, Study.name, func.count(StudyEvent.id))
        .join(Study, Study.id == Wave.study_id)
        .join(StudyEvent, StudyEvent.wave_id == Wave.id)
        .where(StudyEvent.kind == REPORT, or_(Wave.rehearsal.is_(False), Wave.id == chosen))
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
        .where(StudyEvent.kind == REPORT)
    )
    found = defaultdict[str, list[tuple[int, int]]](list)
    for person, number, wave_id in session.execute(rows):
        found[person].append((number, wave_id))
    return found
