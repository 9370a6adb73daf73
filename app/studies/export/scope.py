"""What an export is about: a study or one of its waves, and how much of it is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.csv_tables import Column
from app.errors import NotFound, Phrase
from app.models import Enrolment, SeatRow, Study, StudyVersion, Wave
from app.studies.design import StudyDesign, SurveyQuestion
from app.studies.store import design_of
from app.studies.waves import find_wave


class DataTable(NamedTuple):
    """A table of the archive, and its rows in their order."""

    name: str
    columns: Sequence[Column]
    rows: Any  # an iterable


@dataclass(frozen=True)
class ExportScope:
    """The waves, by their ids, with the versions and designs of their study. Previews are in no wave.

    `public` leaves out what people wrote in their own words; `with_ids` adds the recruiter's ids.
    """

    study: Study
    waves: Mapping[int, Wave]
    versions: Mapping[int, StudyVersion]
    designs: Mapping[int, StudyDesign]
    public: bool = False
    with_ids: bool = False

    @property
    def enrolments(self) -> Select[int]:
        """The ids of the enrolments, as a query."""
        return select(Enrolment.id).where(Enrolment.wave_id.in_(self.waves))

    @property
    def matches(self) -> Select[str]:
        """The ids of the matches in which these people sit, as a query."""
        return select(SeatRow.match_id).where(SeatRow.enrolment_id.in_(self.enrolments))

    @property
    def factors(self) -> list[str]:
        """The factors of all designs, in their order."""
        return list(dict.fromkeys(factor for design in self.designs.values() for factor in design.conditions))

    def questions(self) -> dict[str, SurveyQuestion]:
        """The questions of all surveys by their ids; of several versions the newest says what is asked."""
        return {each.id: each for design in self.designs.values() for each in design.survey.all}


def find_scope(session: Session, reference: str, *, public: bool = False, with_ids: bool = False) -> ExportScope:
    """What `study` or `study:wave` stands for. Raises NotFound for one that there is not, or that has no wave."""
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
    )
