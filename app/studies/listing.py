"""The lists of studies, of their versions and of their waves. Bots and previews do not count as people."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.lists import (
    COMMANDS,
    NOWHERE,
    PAGES,
    Done,
    ListColumn,
    Listing,
    Reference,
    State,
    attribute,
    computed,
    of_other,
)
from app.models import Enrolment, Study, StudyVersion, Wave
from app.studies.endings import COMPLETED
from app.studies.store import written_design
from app.studies.waves import OPEN

FROZEN = "frozen"
WAVE_MARKS = {"open": "good", "paused": "warn", FROZEN: "open"}


class StudyListItem(NamedTuple):
    """A study with its newest version, and whether one of its waves is open."""

    row: Study
    newest: StudyVersion
    is_open: bool


class VersionListItem(NamedTuple):
    """A version of a study."""

    row: StudyVersion
    study: Study


class WaveListItem(NamedTuple):
    """A wave of a study, and the number of its version."""

    row: Wave
    study: Study
    version: int


def wave_state(wave: Wave) -> State:
    """Whether a wave is open, paused, closed, or frozen."""
    word = FROZEN if wave.frozen_at else wave.status
    return State(word, WAVE_MARKS.get(word, ""))


def _studies(session: Session, rows: Sequence[Study]) -> list[StudyListItem]:
    numbers = [row.id for row in rows]
    last = select(func.max(StudyVersion.id)).where(StudyVersion.study_id.in_(numbers)).group_by(StudyVersion.study_id)
    newest = select(StudyVersion).where(StudyVersion.id.in_(last))
    found = {version.study_id: version for version in session.scalars(newest)}
    opened = {*session.scalars(select(Wave.study_id).where(Wave.study_id.in_(numbers), Wave.status == OPEN))}
    return [StudyListItem(row, found[row.id], row.id in opened) for row in rows]


def _version_list_items(session: Session, rows: Sequence[StudyVersion]) -> list[VersionListItem]:
    numbers = {row.study_id for row in rows}
    found = {study.id: study for study in session.scalars(select(Study).where(Study.id.in_(numbers)))}
    return [VersionListItem(row, found[row.study_id]) for row in rows]


def _waves(session: Session, rows: Sequence[Wave]) -> list[WaveListItem]:
    wanted = select(StudyVersion.id, Study, StudyVersion.number).join(Study, Study.id == StudyVersion.study_id)
    numbers = {row.study_version_id for row in rows}
    found = {row[0]: row[1:] for row in session.execute(wanted.where(StudyVersion.id.in_(numbers)))}
    return [WaveListItem(row, *found[row.study_version_id]) for row in rows]


def _people_count(*conditions: ColumnElement[bool]) -> Any:
    """The number of people for whom the conditions hold."""
    return select(func.count(Enrolment.id)).where(*conditions).scalar_subquery()


_NEWEST = of_other(func.max(StudyVersion.number), StudyVersion.study_id == Study.id)
_OF_WAVE = Enrolment.wave_id == Wave.id
_IN_A_WAVE = Enrolment.wave_id.in_(select(Wave.id).where(Wave.rehearsal.is_(False)))

STUDIES: Listing[Study] = Listing(
    name="studies",
    table=Study,
    columns=(
        ListColumn(
            "study",
            Phrase("Study"),
            lambda each: Reference("study", each.row.id, each.row.name, written_design(each.newest)["title"]),
            notes=lambda each: [each.row.name],
            sort=Study.name,
        ),
        attribute(Study.id, Phrase("Number"), "study_id", numeric=True, seen=NOWHERE),
        computed("version", Phrase("Versions"), _NEWEST, numeric=True),
        ListColumn("title", Phrase("Title"), lambda each: written_design(each.newest)["title"], seen=COMMANDS),
        computed(
            "waves", Phrase("Waves"), of_other(func.count(Wave.id), Wave.study_id == Study.id), numeric=True, seen=PAGES
        ),
        computed(
            "enrolled",
            Phrase("Entered"),
            _people_count(
                Enrolment.study_version_id.in_(
                    select(StudyVersion.id).where(StudyVersion.study_id == Study.id).correlate(Study)
                ),
                _IN_A_WAVE,
            ),
            numeric=True,
        ),
        computed(
            "loaded_at",
            Phrase("Loaded, UTC"),
            loaded := of_other(func.max(StudyVersion.created_at), StudyVersion.study_id == Study.id),
            numeric=True,
        ),
    ),
    items=_studies,
    key=loaded,
)

VERSIONS: Listing[StudyVersion] = Listing(
    name="versions",
    table=StudyVersion,
    columns=(
        ListColumn(
            "version",
            Phrase("Version"),
            lambda each: Reference(
                "study_version",
                (each.study.id, each.row.number),
                f"{each.study.name}@{each.row.number}",
                Phrase("version %(version)s", version=each.row.number),
            ),
            sort=StudyVersion.number,
        ),
        attribute(StudyVersion.number, Phrase("Number"), numeric=True, seen=NOWHERE),
        ListColumn("title", Phrase("Title"), lambda each: written_design(each.row)["title"]),
        computed(
            "waves",
            Phrase("Waves"),
            of_other(func.count(Wave.id), Wave.study_version_id == StudyVersion.id),
            numeric=True,
        ),
        computed(
            "enrolled",
            Phrase("Entered"),
            _people_count(Enrolment.study_version_id == StudyVersion.id, _IN_A_WAVE),
            numeric=True,
        ),
        attribute(StudyVersion.created_at, Phrase("Loaded, UTC"), "loaded_at", numeric=True),
        attribute(StudyVersion.sha256, Phrase("SHA-256"), seen=NOWHERE),
    ),
    items=_version_list_items,
    key=StudyVersion.number,
)

WAVES: Listing[Wave] = Listing(
    name="waves",
    table=Wave,
    columns=(
        ListColumn(
            "wave",
            Phrase("Wave"),
            lambda each: Reference("wave", each.row.id, f"{each.study.name}:{each.row.name}", each.row.name),
            sort=Wave.name,
        ),
        attribute(Wave.id, Phrase("Number"), "wave_id", numeric=True, seen=NOWHERE),
        ListColumn(
            "status",
            Phrase("Status"),
            lambda each: wave_state(each.row),
            sort=case((Wave.frozen_at.is_not(None), FROZEN), else_=Wave.status),
        ),
        computed(
            "completed",
            Phrase("Completed"),
            _people_count(_OF_WAVE, Enrolment.ending == COMPLETED),
            lambda each, completed: Done(completed, each.row.settings["places"]),
            type="number",
        ),
        computed("here", Phrase("Active now"), _people_count(_OF_WAVE, Enrolment.ending.is_(None)), numeric=True),
        computed("entered", Phrase("Entered"), _people_count(_OF_WAVE), numeric=True),
        computed("places", Phrase("Places"), Wave.settings["places"].as_integer(), numeric=True, seen=NOWHERE),
        attribute(Wave.created_at, Phrase("Opened, UTC"), "opened_at", numeric=True),
        attribute(Wave.closed_at, Phrase("Closed, UTC"), numeric=True, seen=NOWHERE),
        attribute(Wave.frozen_at, Phrase("Frozen, UTC"), numeric=True, seen=NOWHERE),
        ListColumn(
            "study",
            Phrase("Study"),
            lambda each: Reference("study", each.study.id, each.study.name),
            sort=of_other(Study.name, Study.id == Wave.study_id),
            seen=PAGES,
        ),
        ListColumn(
            "version",
            Phrase("Version"),
            lambda each: each.version,
            sort=of_other(StudyVersion.number, StudyVersion.id == Wave.study_version_id),
            numeric=True,
        ),
    ),
    items=_waves,
)
