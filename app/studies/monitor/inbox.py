"""The inbox of reports: what people reported in all waves, who takes care of it, and who has reported before."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, String, case, cast, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.core.errors import Phrase, Verbatim
from app.core.lists import COMMANDS, NOWHERE, PAGES, Labelled, ListColumn, Listing, Reference, State, attribute
from app.models import Enrolment, Participant, RecruitmentIdentity, Study, StudyEvent, Wave
from app.studies.monitor.words import ending_cell
from app.studies.reports import ANSWERED, ASSIGNED, CLOSED, MARKS, NEW, REPORT, find_event

MOST = 500  # reports that a page lists
# The page where a researcher writes to people of a study at Prolific. Source: as PsyNet links it.
PROLIFIC_SUBMISSIONS = "https://app.prolific.com/researcher/workspaces/studies/{study}/submissions"
OF_EACH = 3  # by one person, so that nobody fills the page alone
_STATE_MARKS = {NEW: "warn", ASSIGNED: "open", ANSWERED: "good", CLOSED: ""}
WAY_WORDS: Mapping[str, Phrase] = {
    "recruiter": Phrase("message through the recruiter"), "mail": Phrase("mail"), "phone": Phrase("phone"),
    "in person": Phrase("in person"), "other": Phrase("otherwise"),
}  # fmt: skip
REASON_WORDS: Mapping[str, Phrase] = {
    "broken": Phrase("something does not work"), "stuck": Phrase("game or partner is stuck"),
    "upsetting": Phrase("upsetting or offensive"), "unclear": Phrase("does not understand what to do"),
    "too long": Phrase("takes longer than stated"), "other": Phrase("something else"),
}  # fmt: skip


class InboxReport(NamedTuple):
    """A report of a person. `state` is new, assigned, answered or closed; `mark` is the event that set it, if any.

    `number` counts the person's reports up to this one, in all waves and studies, and `elsewhere` those in other waves.
    `further` counts the person's reports that follow this one and are left out.
    """

    event: StudyEvent
    wave: Wave
    study: str
    code: str
    ending: str | None
    state: str
    mark: StudyEvent | None
    number: int
    elsewhere: int
    further: int

    @property
    def row(self) -> StudyEvent:
        """The row of the list."""
        return self.event

    @property
    def assigned_to(self) -> str | None:
        """The experimenter who takes care of it."""
        return None if self.mark is None else self.mark.body.get("to")

    @property
    def said(self) -> list[Phrase]:
        """Who handles it, or who else set its state."""
        by = "" if self.mark is None else self.mark.body["by"]
        found = [Phrase("assigned to %(name)s", name=Verbatim(self.assigned_to))] if self.assigned_to else []
        marked = by and (by != self.assigned_to or self.state == NEW)
        return [*found, *([Phrase("marked by %(name)s", name=Verbatim(by))] if marked else [])]

    @property
    def reason(self) -> str:
        """What went wrong; older reports have no such answer."""
        return str(self.event.body.get("reported", "other"))

    @property
    def text(self) -> str:
        """The report in the person's words."""
        return str(self.event.body.get("text", ""))

    @property
    def again(self) -> list[Phrase]:
        """The number of this report if the person has reported before, and of those in other waves."""
        found = [Phrase("report %(number)s of this person", number=self.number)]
        if self.elsewhere:
            found.append(Phrase("in other waves: %(count)s", count=self.elsewhere))
        return found if self.number > 1 or self.elsewhere else []

    @property
    def left_out(self) -> Phrase:
        """The number of the person's reports that follow this one and are not listed."""
        return Phrase("not listed here: %(count)s more of this person", count=self.further)

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
    each: bool = False,
    most: int | None = MOST,
) -> Sequence[InboxReport]:
    """The reports of a wave, or of all waves of people, new ones first, then by time, the latest first.

    `state` filters them; the first `most` are returned, all if it is None. `each` is that of `conditions`.
    """
    chosen = conditions(wave_id, state=state, each=each)
    return _inbox_reports(session, REPORTS.read(session, REPORTS.order(""), most, where=chosen).rows)


def conditions(
    wave_id: int | None = None,
    *,
    state: str | None = None,
    code: str | None = None,
    to: str | None = None,
    each: bool = False,
) -> list[ColumnElement[bool]]:
    """The conditions for listed reports. Reports of bots are listed only by their wave.

    code: a part of the person's code. to: the experimenter they are assigned to. each: at most OF_EACH reports per
    person, wave and status.
    """
    found: list[ColumnElement[bool]] = [Wave.rehearsal.is_(False) if wave_id is None else Wave.id == wave_id]
    if state:
        found.append(state == _STATE)
    if to:
        found.append(to == _TO)
    if code:
        found.append(func.lower(Participant.code).contains(code.lower(), autoescape=True))
    if each:
        found.append(StudyEvent.id.in_(select(_PLACED.c.id).where(_PLACED.c.place <= OF_EACH)))
    return found


def how_many(session: Session, wave_id: int | None = None, *, state: str | None = None) -> int:
    """The number of reports that `inbox` selects, regardless of how many it lists."""
    counted = _reports(func.count(StudyEvent.id)).where(*conditions(wave_id, state=state))
    return session.scalar(counted) or 0


class WaitingReports(NamedTuple):
    """The numbers of reports that wait for an experimenter: new ones, and those assigned to them but not yet
    answered.
    """

    new: int
    own: int


def waiting_reports(session: Session, name: str) -> WaitingReports:
    """The reports of all waves of people that wait for the experimenter of that name."""
    own = case(((_STATE == ASSIGNED) & (name == _TO), 1), else_=0)
    sums = [func.coalesce(func.sum(each), 0) for each in (case((_STATE == NEW, 1), else_=0), own)]
    return WaitingReports(*session.execute(_reports(*sums).where(*conditions())).one())


def find_report(session: Session, report_id: int) -> InboxReport:
    """A report by its number. Raises NotFound."""
    [found] = _inbox_reports(session, [find_event(session, report_id)])
    return found


class ReportContact(NamedTuple):
    """A person's id at the recruiter, for a message there; `address` is the page of the study's people, if known."""

    recruiter: str
    external_id: str
    address: str | None


def contacts_of(session: Session, report: InboxReport) -> list[ReportContact]:
    """The ways to reach the person of a report; empty if no id is stored."""
    enrolment = session.get_one(Enrolment, report.event.enrolment_id)
    rows = session.scalars(
        select(RecruitmentIdentity)
        .where(RecruitmentIdentity.participant_id == enrolment.participant_id)
        .order_by(RecruitmentIdentity.id)
    )
    study = (report.wave.settings.get("provider") or {}).get("prolific") or {}
    address = PROLIFIC_SUBMISSIONS.format(study=study["study_id"]) if study.get("study_id") else None
    at = {"prolific": address}
    return [ReportContact(row.recruiter, row.external_id, at.get(row.recruiter)) for row in rows]


def _reports(*columns: Any) -> Select[Any]:
    """All reports with their people and waves, each with its last mark, if it has one."""
    return (
        select(*columns)
        .select_from(StudyEvent)
        .join(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == StudyEvent.wave_id)
        .join(Study, Study.id == Wave.study_id)
        .outerjoin(_LAST, _LAST.c.report == StudyEvent.id)
        .outerjoin(_MARK, _MARK.id == _LAST.c.id)
        .where(StudyEvent.kind == REPORT)
    )


_MARK = aliased(StudyEvent)
_REPORT_OF = StudyEvent.body["report"].as_integer()
_LAST = (
    select(_REPORT_OF.label("report"), func.max(StudyEvent.id).label("id"))
    .where(StudyEvent.kind.in_(MARKS.values()))
    .group_by(_REPORT_OF)
    .subquery()
)
_TO = _MARK.body["to"].as_string()
_STATE: Any = case(*((_MARK.kind == kind, state) for state, kind in MARKS.items()), else_=NEW)
# The same for a person in all studies; for people without an id, in one study.
_PERSON = func.coalesce(Participant.person_hash, cast(Participant.id, String))
_ALIKE = (_PERSON, StudyEvent.wave_id, _STATE)
_PLACED = _reports(
    StudyEvent.id,
    func.row_number().over(partition_by=_ALIKE, order_by=StudyEvent.id.desc()).label("place"),
    func.count().over(partition_by=_ALIKE).label("of"),
).subquery()


def _inbox_reports(session: Session, rows: Sequence[StudyEvent]) -> list[InboxReport]:
    numbers = [row.id for row in rows]
    wanted = _reports(
        StudyEvent.id, Wave, Study.name, Participant.code, Enrolment.ending, _PERSON, _STATE, _MARK, _PLACED.c.place,
        _PLACED.c.of,
    )  # fmt: skip
    wanted = wanted.join(_PLACED, _PLACED.c.id == StudyEvent.id).where(StudyEvent.id.in_(numbers))
    known = {row[0]: row[1:] for row in session.execute(wanted)}
    before = _by_person(session, {known[number][4] for number in numbers})
    found = []
    for row in rows:
        wave, study, code, ending, person, state, mark, place, of = known[row.id]
        own = before[person]
        number = sum(number <= row.id for number, _ in own)
        elsewhere = sum(other != wave.id for _, other in own)
        further = of - place if place == OF_EACH else 0
        found.append(InboxReport(row, wave, study, code, ending, state, mark, number, elsewhere, further))
    return found


def waves_with_reports(session: Session, chosen: int | None = None) -> Sequence[tuple[Wave, str, int]]:
    """The waves with reports, with their studies' names and the numbers of reports.

    Waves of bots are left out, except for the chosen one.
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


def _by_person(session: Session, people: Collection[str]) -> Mapping[str, list[tuple[int, int]]]:
    """All reports of these people: their ids, with their wave ids."""
    found = defaultdict[str, list[tuple[int, int]]](list)
    wanted = _reports(_PERSON, StudyEvent.id, StudyEvent.wave_id).where(_PERSON.in_(people))
    for person, number, wave_id in session.execute(wanted):
        found[person].append((number, wave_id))
    return found


REPORTS: Listing[StudyEvent] = Listing(
    name="reports",
    table=StudyEvent,
    columns=(
        ListColumn(
            "participant",
            Phrase("Person"),
            lambda each: Reference("participant", (each.wave.id, each.row.enrolment_id), each.code),
            notes=lambda each: [
                *each.again,
                *([Reference("reports_of", (each.wave.id, each.code), each.left_out)] if each.further else []),
            ],
            sort=Participant.code,
        ),
        attribute(StudyEvent.id, Phrase("Number"), "report", numeric=True, seen=COMMANDS),
        ListColumn(
            "state",
            Phrase("Status"),
            lambda each: State(each.state, _STATE_MARKS[each.state]),
            notes=lambda each: each.said,
            sort=_STATE,
        ),
        ListColumn("assigned_to", Phrase("Assigned to"), lambda each: each.assigned_to, sort=_TO, seen=COMMANDS),
        ListColumn(
            "wave",
            Phrase("Wave"),
            lambda each: Reference("wave", each.wave.id, f"{each.study}:{each.wave.name}"),
            sort=Study.name + ":" + Wave.name,
        ),
        ListColumn(
            "reason",
            Phrase("Reason"),
            lambda each: Labelled(each.reason, REASON_WORDS[each.reason]),
            notes=lambda each: [each.text],
            sort=StudyEvent.body["reported"].as_string(),
        ),
        ListColumn(
            "match",
            Phrase("Match"),
            lambda each: each.match and Reference("match", each.match, each.match),
            sort=StudyEvent.body["match"].as_string(),
        ),
        ListColumn(
            "ending",
            Phrase("Ending"),
            lambda each: ending_cell(each.ending),
            notes=lambda each: [Phrase("at the step %(step)s", step=Verbatim(each.row.body["step"]))],
            sort=Enrolment.ending,
            seen=PAGES,
        ),
        attribute(StudyEvent.at, Phrase("At, UTC"), numeric=True),
        ListColumn(
            "of_this_person",
            Phrase("Reports of this person until then"),
            lambda each: each.number,
            numeric=True,
            seen=COMMANDS,
        ),
        ListColumn("in_other_waves", Phrase("In other waves"), lambda each: each.elsewhere, numeric=True, seen=NOWHERE),
        ListColumn("text", Phrase("Text"), lambda each: each.text, seen=COMMANDS),
    ),
    items=_inbox_reports,
    start=lambda: _reports(StudyEvent),
    key=case((_STATE == NEW, 1), else_=0),
)
