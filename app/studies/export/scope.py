"""The scope of an export: a study or one of its waves, and how much of it is included.

For a frozen wave, an export holds the state at the freeze, so it never changes except when people have their data
deleted. Later additions, such as payments and adjustments, are an export of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from app.core.csv_tables import Column
from app.core.errors import Conflict, NotFound, Phrase
from app.models import Enrolment, SeatRow, Study, StudyEvent, StudyVersion, Wave
from app.studies.design import StudyDesign, SurveyQuestion
from app.studies.store import design_of
from app.studies.waves import FROZEN, find_wave


class DataTable(NamedTuple):
    """A table of the archive, and its rows in their order."""

    name: str
    columns: Sequence[Column]
    rows: Any  # an iterable


@dataclass(frozen=True)
class ExportScope:
    """The waves, by id, with the versions and designs of their study. Previews are in no wave.

    `public` leaves out what people wrote in their own words; `with_ids` adds the recruiter's ids. `frozen` maps each
    frozen wave to the id of the event that froze it; with `since_freeze` the export covers what came after that.
    """

    study: Study
    waves: Mapping[int, Wave]
    versions: Mapping[int, StudyVersion]
    designs: Mapping[int, StudyDesign]
    public: bool = False
    with_ids: bool = False
    frozen: Mapping[int, int] = field(default_factory=dict)
    since_freeze: bool = False

    @property
    def frozen_at(self) -> datetime | None:
        """When the last of the waves was frozen; None while one of them is not."""
        moments = [wave.frozen_at for wave in self.waves.values()]
        return None if None in moments else max(moment for moment in moments if moment is not None)

    @property
    def events(self) -> ColumnElement[bool]:
        """Which rows of StudyEvent are in the export."""
        if self.since_freeze:
            return or_(*(_is_of_wave(wave) & (StudyEvent.id > last) for wave, last in self.frozen.items()))
        going_on = StudyEvent.wave_id.in_(self.waves.keys() - self.frozen.keys())
        return or_(going_on, *(_is_of_wave(wave) & (StudyEvent.id <= last) for wave, last in self.frozen.items()))

    @property
    def enrolments(self) -> Select[int]:
        """The ids of the enrolments, as a query."""
        return select(Enrolment.id).where(Enrolment.wave_id.in_(self.waves))

    @property
    def matches(self) -> Select[str]:
        """The ids of these people's matches, as a query."""
        return select(SeatRow.match_id).where(SeatRow.enrolment_id.in_(self.enrolments))

    @property
    def factors(self) -> list[str]:
        """The factors of all designs, in their order."""
        return list(dict.fromkeys(factor for design in self.designs.values() for factor in design.conditions))

    def questions(self) -> dict[str, SurveyQuestion]:
        """The questions of all surveys by id; of several versions, the newest determines the question."""
        return {each.id: each for design in self.designs.values() for each in design.survey.all}


def _is_of_wave(wave_id: int) -> ColumnElement[bool]:
    return StudyEvent.wave_id == wave_id


def find_scope(
    session: Session, reference: str, *, public: bool = False, with_ids: bool = False, since_freeze: bool = False
) -> ExportScope:
    """The scope of `study` or `study:wave`; with `since_freeze`, only its frozen waves.

    Raises NotFound if it does not exist or has no wave, and Conflict if `since_freeze` is set and no wave is frozen.
    """
    name, mark, _ = reference.partition(":")
    study = session.scalar(select(Study).where(Study.name == name))
    if study is None:
        raise NotFound("study", expected=Phrase("STUDY or STUDY:WAVE, with a study that was loaded"), got=reference)
    waves: Sequence[Wave] = (
        [find_wave(session, reference)]
        if mark
        else session.scalars(select(Wave).where(Wave.study_id == study.id).order_by(Wave.id)).all()
    )
    if not waves:
        raise NotFound("wave", expected=Phrase("a study with a wave that was opened"), got=reference)
    if since_freeze:
        waves = [wave for wave in waves if wave.frozen_at is not None]
        if not waves:
            raise Conflict("wave", expected=Phrase("a wave that is frozen"), got=reference)
    freezing = select(StudyEvent.wave_id, func.max(StudyEvent.id)).where(
        StudyEvent.kind == FROZEN, StudyEvent.wave_id.in_([wave.id for wave in waves])
    )
    found = session.scalars(
        select(StudyVersion)
        .where(StudyVersion.id.in_({wave.study_version_id for wave in waves}))
        .order_by(StudyVersion.number)
    ).all()
    return ExportScope(
        study,
        {wave.id: wave for wave in waves},
        {version.id: version for version in found},
        {version.id: design_of(version) for version in found},
        public,
        with_ids,
        dict(session.execute(freezing.group_by(StudyEvent.wave_id)).all()),
        since_freeze,
    )
