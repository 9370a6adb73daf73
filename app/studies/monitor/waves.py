"""Waves by id, and facts about each."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import NotFound, Phrase
from app.models import Enrolment, LanguageModel, Study, StudyVersion, Wave
from app.studies.design import StudyDesign
from app.studies.store import models_of


class FoundWave(NamedTuple):
    """A wave with its study and its version."""

    wave: Wave
    study: Study
    version: StudyVersion


def wave_by_id(session: Session, wave_id: int) -> FoundWave:
    """A wave by its id. Raises NotFound."""
    wave = session.get(Wave, wave_id)
    if wave is None:
        raise NotFound("wave", expected=Phrase("one that exists"), got=wave_id)
    study, version = session.get_one(Study, wave.study_id), session.get_one(StudyVersion, wave.study_version_id)
    return FoundWave(wave, study, version)


def with_a_place(session: Session, wave_id: int) -> int:
    """How many people under way in a wave hold a place."""
    wanted = select(func.count()).select_from(Enrolment)
    here = wanted.where(Enrolment.wave_id == wave_id, Enrolment.ending.is_(None), Enrolment.holds_place)
    return session.scalar(here) or 0


def models_by_label(session: Session, version: StudyVersion, design: StudyDesign) -> Mapping[str, LanguageModel]:
    """Which model each label of a design stands for."""
    models = models_of(session, version)
    return {label: models[str(level)] for label, level in design.levels("model").items() if str(level) in models}
