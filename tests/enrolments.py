"""People in a wave of a study, written to the database as their steps and their matches leave them there."""

import random
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.matches import live
from app.matches.stored import StoredMatch, StoredSeat
from app.models import (
    Arm,
    Enrolment,
    EventRow,
    LanguageModel,
    MatchRow,
    Participant,
    RecruitmentIdentity,
    SeatRow,
    StudyVersion,
    Submission,
    Wave,
)
from app.registry import PERSON, add_scripted_model
from app.studies import store
from app.studies.arms import arms
from app.studies.design_files import load_design
from app.studies.endings import EndingName
from app.studies.progress import StudyProgress, end, find_progress
from tests.waves import STUDIES

CONTEXT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}  # a deal gives 7 and 8 points
DEAL = (
    "[message] hi",
    "[message] hello",
    "[propose] (1 books, 2 hats, 0 balls)",
    "[propose] (2 books, 0 hats, 1 ball)",
)
START = datetime(2026, 9, 1, 12, tzinfo=UTC)


def load_example(session: Session, folder: Path, name: str = "two-models", **changes: str) -> StudyVersion:
    """A shipped study, filled in, in a writable copy, with a scripted model for the one it names; `changes` of text."""
    if session.scalar(select(LanguageModel.id).where(LanguageModel.name == "casual")) is None:
        add_scripted_model(session, "casual", None, {"manner": "casual"})
    path = Path(shutil.copytree(STUDIES / name, folder / name)) / f"{name}.yaml"
    text = path.read_text().replace("b: tiny}", "b: casual}")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return store.load(session, load_design(path))[0]


def open_wave(session: Session, version: StudyVersion, recruiter: str = "prolific", name: str = "main") -> Wave:
    """A wave of a version at a recruiter."""
    terms = {"study_id": "66f0c1"} if recruiter == "prolific" else {}
    wave = Wave(
        study_id=version.study_id,
        study_version_id=version.id,
        name=name,
        settings={
            "wave": name,
            "of": "x",
            "provider": {recruiter: terms},
            "places": 10,
            "most_spent": "500.00",
        },
        status="open",
        created_at=START,
    )
    session.add(wave)
    session.flush()
    return wave


def enrol(
    session: Session, wave: Wave | None, code: str, version: StudyVersion, *, arm: int | None = 0,
    at: datetime = START, listed: bool = True,
) -> StudyProgress:  # fmt: skip
    """A person who came in at a time, with an arm if there is one; without a wave it is a preview.

    `listed`: a table of the recruiter's has named their visit.
    """
    participant = Participant(study_id=version.study_id, code=code, created_at=at)
    session.add(participant)
    session.flush()
    recruiter = None if wave is None else next(iter(wave.settings["provider"]))
    enrolment = Enrolment(
        participant_id=participant.id,
        study_version_id=version.id,
        wave_id=None if wave is None else wave.id,
        token=code,
        device="desktop",
        step=0,
        stage="consent",
        answers={},
        enrolled_at=at,
        agreed_at=at,
        seen_at=at,
    )
    session.add(enrolment)
    session.flush()
    if wave is not None and recruiter is not None:
        session.add(
            RecruitmentIdentity(participant_id=participant.id, recruiter=recruiter, external_id=f"{code.lower()}id")
        )
        visit = Submission(
            wave_id=wave.id, enrolment_id=enrolment.id, recruiter=recruiter, external_id=f"visit{code.lower()}",
            status="active", created_at=at, changed_at=at,
            listed_at=at if listed else None,
        )  # fmt: skip
        session.add(visit)
    progress = find_progress(session, enrolment.id)
    if arm is not None:
        planned = arms(progress.design)[arm]
        enrolment.arm_id = session.scalars(
            select(Arm.id).where(Arm.study_version_id == version.id, Arm.name == planned.name)
        ).one()
        enrolment.assigned_at = at
        enrolment.plan = {
            "matches": [
                {"block": block, "condition": dict(condition), "piece": None, "seat": 0, "first": 0}
                for block, conditions in enumerate(planned.blocks)
                for condition in conditions
            ],
            "practice": [],
        }
    session.flush()
    return progress


class KnownWave(NamedTuple):
    """The ids of a wave of two-models at Prolific, and of its version."""

    wave: int
    version: int


def person(session: Session, known: KnownWave, code: str, **options: Any) -> StudyProgress:
    """Somebody who came into that wave, as `enrol` has it."""
    return enrol(
        session, session.get_one(Wave, known.wave), code, session.get_one(StudyVersion, known.version), **options
    )


def begin(session: Session, progress: StudyProgress, position: int | None, **config: Any) -> StoredMatch:
    """A match of a person, who has seat 0; without a position it is practice."""
    condition = {} if position is None else progress.enrolment.plan["matches"][position]["condition"]  # type: ignore[index]
    given = {**CONTEXT, "objective": condition.get("objective", "self"), **config}
    partner = session.scalars(select(LanguageModel).where(LanguageModel.name == "casual")).one()
    seats = (StoredSeat(PERSON), StoredSeat(PERSON))
    record = live.create(
        session, progress.design.game, given if progress.design.game == "negotiation" else config, seats,
        seed=random.Random(str((progress.enrolment.id, position))).getrandbits(40), source="live", instant=False,
    )  # fmt: skip
    session.flush()
    row = session.get_one(MatchRow, record.id)
    row.arm_id, row.position = progress.enrolment.arm_id, position
    own, other = (session.get_one(SeatRow, (record.id, seat)) for seat in (0, 1))
    own.enrolment_id, own.participant_id = progress.enrolment.id, progress.enrolment.participant_id
    other.kind, other.language_model_id = "model", partner.id
    session.flush()
    return record


def play(
    session: Session, progress: StudyProgress, position: int | None, moves: Sequence[str] = DEAL, **config: Any
) -> str:
    """A match of a person that is played to its end."""
    record = begin(session, progress, position, **config)
    for ply, text in enumerate(moves):
        receipt = live.submit(session, live.MoveSubmission(record.id, ply % 2, text), instant=False)
        assert receipt.answer.ok, receipt.answer
    session.expire_all()
    return record.id


def break_off(session: Session, progress: StudyProgress, position: int) -> str:
    """A match that the model breaks off."""
    record = begin(session, progress, position)
    live.abort(session, record, "model", 1, "no answer")
    session.expire_all()
    return record.id


def time_moves(session: Session, match_id: str, seat: int, timing: Mapping[str, Any]) -> None:
    """Say how a person wrote the moves of a match."""
    for event in session.scalars(select(EventRow).where(EventRow.match_id == match_id, EventRow.seat == seat)):
        event.timing = dict(timing)
    session.flush()


def finish(
    session: Session, progress: StudyProgress, ending: EndingName = "completed", minutes: float = 20
) -> StudyProgress:
    """The end of an enrolment, so many minutes after its beginning."""
    end(session, progress, ending)
    progress.enrolment.ended_at = progress.enrolment.enrolled_at + timedelta(minutes=minutes)
    session.flush()
    return progress
