"""The versions of studies in the database. Nothing here commits.

A version never changes: another design under the same name is another version. Its models are pinned by their rows in
the registry, so later changes to names and labels do not change who played.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, FieldError, Invalid, NotFound, Phrase, Verbatim
from app.jobs.holding import hold
from app.models import Arm, LanguageModel, Study, StudyVersion, Wave
from app.registry import find_round_model
from app.registry.prompts import find_prompt
from app.studies.arms import arms
from app.studies.checks import MODEL, NO_PROMPT, PROMPT
from app.studies.design import StudyDesign
from app.studies.endings import INACTIVE, NO_BASE, EndingChange
from app.studies.loaded_design import LoadedDesign

BY_TIME_IF_INACTIVE = 2  # the format from which an unmentioned ending `inactive` pays by time


def load(session: Session, loaded: LoadedDesign) -> tuple[StudyVersion, bool]:
    """Store a design as the newest version of its study, and return whether it is new.

    Loading the same file again gives the same version, unless its names now stand for other models. Raises Invalid for
    a model that cannot play with people.
    """
    design = loaded.design
    study = session.scalar(select(Study).where(Study.name == design.study))
    if study is None:
        study = Study(name=design.study, created_at=datetime.now(UTC))
        session.add(study)
        session.flush()
    newest = newest_version(session, study.id)
    if newest is not None and newest.sha256 == loaded.sha256 and _has_its_models(session, newest, design):
        return newest, False
    stored = {**loaded.to_json(), "models": pinned_models(session, design)}
    version = StudyVersion(
        study_id=study.id,
        number=1 if newest is None else newest.number + 1,
        design=stored,
        sha256=loaded.sha256,
        created_at=datetime.now(UTC),
    )
    session.add(version)
    session.flush()
    for arm in arms(design):
        plan = [{"block": at, **condition} for at, block in enumerate(arm.blocks) for condition in block]
        session.add(Arm(study_version_id=version.id, name=arm.name, conditions=plan))
    session.flush()
    return version, True


def _has_its_models(session: Session, version: StudyVersion, design: StudyDesign) -> bool:
    """Whether the names in a design stand for the models that were pinned, or for none that can be played now."""
    pinned: Mapping[str, int] = version.design["models"]
    try:
        return pinned_models(session, design) == pinned
    except FieldError:
        return True


def written_design(version: StudyVersion) -> dict[str, Any]:
    """The design as its author wrote it, in the author's order."""
    written: dict[str, Any] = json.loads(version.design["design"])
    return written


def design_of(version: StudyVersion) -> StudyDesign:
    """The design of a version, read once."""
    return _parsed_design(version.id, version.design["design"], version.design["format"])


def design_of_wave(session: Session, wave: Wave) -> StudyDesign:
    """The design that applies to a wave's people."""
    return design_of(session.get_one(StudyVersion, wave.study_version_id))


@lru_cache(maxsize=64)
def _parsed_design(_version_id: int, text: str, written_in: int) -> StudyDesign:
    """The design with its meaning at the time of writing, regardless of later changes to the preset of endings."""
    design = StudyDesign.model_validate_json(text)
    if written_in >= BY_TIME_IF_INACTIVE or "base" in design.endings.get(INACTIVE, EndingChange()).model_fields_set:
        return design
    changed = design.endings.get(INACTIVE, EndingChange()).model_copy(update={"base": NO_BASE})
    return design.model_copy(update={"endings": {**design.endings, INACTIVE: changed}})


def pinned_models(session: Session, design: StudyDesign) -> dict[str, int]:
    """The registry rows of a design's models, by their names in it. Raises Invalid for one that does not exist."""
    names: dict[str, tuple[str, ...]] = {str(level): ("conditions", MODEL) for level in design.levels(MODEL).values()}
    if design.plan.practice is not None:
        names.setdefault(design.plan.practice.against, ("plan", "practice", "against"))
    found: dict[str, int] = {}
    for name, path in names.items():
        try:
            found[name] = find_round_model(session, design.game, name).id
        except FieldError as error:
            raise Invalid(None, **{**error.parts, "subject": Verbatim(".".join(path))}) from None
    for level in design.levels(PROMPT).values() if PROMPT in design.conditions else ():
        try:
            if level != NO_PROMPT:
                find_prompt(session, str(level))
        except FieldError as error:
            raise Invalid(None, **{**error.parts, "subject": Verbatim(f"conditions.{PROMPT}")}) from None
    return found


def newest_version(session: Session, study_id: int) -> StudyVersion | None:
    """The newest version of a study; None before there is one."""
    versions = select(StudyVersion).where(StudyVersion.study_id == study_id)
    return session.scalar(versions.order_by(StudyVersion.number.desc()).limit(1))


def find_version(session: Session, reference: str) -> StudyVersion:
    """A version by `study` (the newest) or `study@number`. Raises NotFound."""
    name, mark, number = reference.partition("@")
    study = session.scalar(select(Study).where(Study.name == name))
    if study is None:
        raise NotFound(
            "study", expected="the name of a study that was loaded", got=name, remedy="`flask study list` shows them"
        )
    if not mark:
        newest = newest_version(session, study.id)
        if newest is not None:
            return newest
    wanted = int(number) if number.isdecimal() and len(number) < 10 else 0
    found = session.scalar(select(StudyVersion).where(StudyVersion.study_id == study.id, StudyVersion.number == wanted))
    if found is None:
        raise NotFound("study", expected=f"{name} or {name}@NUMBER, with a version that is there", got=reference)
    return found


def models_of(session: Session, version: StudyVersion) -> Mapping[str, LanguageModel]:
    """The pinned models of a version by the names in its design."""
    pinned: Mapping[str, int] = version.design["models"]
    rows = {row.id: row for row in session.scalars(select(LanguageModel).where(LanguageModel.id.in_(pinned.values())))}
    return {name: rows[number] for name, number in pinned.items() if number in rows}


def check_models_there(session: Session, version: StudyVersion) -> None:
    """Raises Invalid where the checkpoint of a pinned model was removed."""
    for name, model in models_of(session, version).items():
        try:
            hold(session, [model])
        except Conflict:
            raise Invalid(
                "of",
                expected=Phrase("models whose checkpoints are there"),
                got=Phrase("%(name)s, which was removed on %(day)s", name=name, day=f"{model.removed_at:%Y-%m-%d}"),
                remedy=Phrase("`flask storage removed` says how to put it back"),
            ) from None
