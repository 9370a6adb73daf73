"""A person in a study, with a plan that the test writes instead of drawing it."""

import secrets
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import ROOT
from app.models import Arm, Enrolment, EventRow, MatchRow, Participant, StudyVersion, Wave
from app.studies import store
from app.studies.design_files import load_design
from app.studies.participant_steps import Step
from app.studies.progress import StudyProgress

EXAMPLES = ROOT / "data" / "studies"


def loaded(session: Session, tmp_path: Path, study: str, *replaced: tuple[str, str]) -> StudyVersion:
    """An example as a stored version, with other words in its file."""
    folder = Path(shutil.copytree(EXAMPLES / study, tmp_path / f"{study}-{secrets.token_hex(4)}"))
    file = folder / f"{study}.yaml"
    text = file.read_text()
    for old, new in replaced:
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text)
    return store.load(session, load_design(file))[0]


def enrolled(session: Session, version: StudyVersion, **planned: Any) -> StudyProgress:
    """A person in a wave of a study, with an arm and a plan; `planned` changes what each match of it says."""
    arm = session.scalars(select(Arm).where(Arm.study_version_id == version.id).order_by(Arm.id)).first()
    assert arm is not None
    now = datetime.now(UTC)
    wave = Wave(
        study_id=version.study_id, study_version_id=version.id, name=secrets.token_hex(8), settings={}, status="open",
        created_at=now,
    )  # fmt: skip
    participant = Participant(study_id=version.study_id, code=secrets.token_hex(8), created_at=now)
    session.add_all([wave, participant])
    session.flush()
    drawn = {"seat": 0, "first": 0, **planned}
    matches = [
        {
            "block": condition["block"],
            "condition": {name: label for name, label in condition.items() if name != "block"},
            "piece": number,
            **drawn,
        }
        for number, condition in enumerate(arm.conditions)
    ]
    enrolment = Enrolment(
        participant_id=participant.id, study_version_id=version.id, wave_id=wave.id, arm_id=arm.id, assigned_at=now,
        token=secrets.token_urlsafe(32), plan={"matches": matches, "practice": [{"piece": 7, "seat": drawn["seat"]}]},
        step=0, stage="consent", answers={}, enrolled_at=now, seen_at=now,
    )  # fmt: skip
    session.add(enrolment)
    session.flush()
    return StudyProgress(enrolment, version)


def go_to(progress: StudyProgress, key: str) -> Step:
    """Put a person at the step of that key."""
    at = next(number for number, step in enumerate(progress.steps) if step.key == key)
    progress.enrolment.step, progress.enrolment.stage = at, progress.steps[at].kind
    return progress.step


def move_back(session: Session, match_id: str, time: timedelta) -> None:
    """Have all of a match been so much earlier."""
    for event in session.scalars(select(EventRow).where(EventRow.match_id == match_id)):
        event.at -= time
    row = session.get_one(MatchRow, match_id)
    row.moved_at -= time
    if row.deadline is not None:
        row.deadline -= time
