"""Tables of people: who came, their consents, enrolments and visits, and their recruiters' ids."""

from typing import Any

from sqlalchemy import exists, false, or_, select

from app.core.csv_tables import Column
from app.models import (
    Arm,
    Consent,
    Enrolment,
    Participant,
    RecruitmentIdentity,
    StudyEvent,
    StudyVersion,
    Submission,
    Wave,
)
from app.studies.endings import PROLIFIC
from app.studies.export.columns import (
    CODE,
    DATA_OF,
    OF_WHOM,
    PARTICIPANT,
    TIME,
    WAVE,
    StoredTable,
    data_column,
    of_people,
    time_column,
)
from app.studies.export.scope import ExportScope
from app.studies.extra_time import EXTRA_TIME
from app.studies.participant_steps import DEBRIEF
from app.studies.progress import STEP


def tables(scope: ExportScope) -> list[StoredTable]:
    """All tables of people without recruiters' ids."""
    return [_participants(scope), consents(scope), _enrolments(scope), _submissions(scope)]


def _participants(scope: ExportScope) -> StoredTable:
    columns = (
        PARTICIPANT,
        time_column("created_at", "When the person first came to the study."),
        Column("deleted", "boolean", "Whether the person had all data deleted: texts and answers are gone everywhere.",
               "true | false", lambda row: row.erased_at is not None),
    )  # fmt: skip
    people = select(CODE, Participant.created_at, Participant.erased_at)
    own = select(Enrolment.participant_id).where(Enrolment.wave_id.in_(scope.waves))
    return StoredTable("participants", columns, people.where(Participant.id.in_(own)).order_by(Participant.id))


def consents(scope: ExportScope) -> StoredTable:
    """People's consents, until the waves were frozen or, with `since_freeze`, until now."""
    until = None if scope.since_freeze else scope.frozen_at

    def withdrawn_at(row: Any) -> Any:
        later = row.withdrawn_at is not None and until is not None and row.withdrawn_at > until
        return None if later else row.withdrawn_at

    columns = (
        PARTICIPANT,
        Column("kind", "text", "What was asked.", "participation | training | publication"),
        Column("text_version", "text", "The SHA-256 of the text that was read.", "64 hexadecimal digits"),
        Column("given", "boolean", "What was answered.", "true | false"),
        time_column("at", "When it was answered."),
        Column("withdrawn_at", "time", "When it was withdrawn.", f"{TIME}; empty if it was not", withdrawn_at),
    )
    own = select(Enrolment.participant_id).where(Enrolment.wave_id.in_(scope.waves))
    rows = (
        select(CODE, Consent.kind, Consent.text_version, Consent.given, Consent.at, Consent.withdrawn_at)
        .join(Participant, Participant.id == Consent.participant_id)
        .where(Consent.participant_id.in_(own), *([] if until is None else [Consent.at <= until]))
        .order_by(Participant.id, Consent.id)
    )
    return StoredTable("consents", columns, rows)


def _enrolments(scope: ExportScope) -> StoredTable:
    columns = (
        PARTICIPANT,
        WAVE,
        Column("version", "integer", "The version of the study.", "from 1"),
        Column("device", "text", "The person's device.", "desktop | tablet | phone"),
        Column("stratum", "text", "The stratum within which the arm was drawn.", "empty where all are one"),
        Column("arm", "text", "The arm.", "a name; empty before it was drawn"),
        time_column("assigned_at", "When the arm was drawn.", f"{TIME}; empty before that"),
        Column("stage", "text", "The kind of the last page that the person saw.", "consent | quiz | match | done | …",
               lambda row: DEBRIEF if row.went_on_since else row.stage),
        Column("ending", "text", "How it ended.", f"{' | '.join(PROLIFIC)}; empty while active"),
        data_column(scope),
        Column("extra_time", "number", "The factor by which the person's time for matches was extended, as set last.",
               "1.5; empty for the same time as others"),
        time_column("enrolled_at", "When the person enrolled."),
        time_column("ended_at", "When it ended.", f"{TIME}; empty while active"),
    )  # fmt: skip
    extra_time = (
        select(StudyEvent.body["factor"].as_string())
        .where(StudyEvent.enrolment_id == Enrolment.id, StudyEvent.kind == EXTRA_TIME)
        .order_by(StudyEvent.id.desc())
        .limit(1)
        .correlate(Enrolment)
        .scalar_subquery()
    )
    # In a frozen wave everybody has ended, and only the debrief can be followed by a step.
    went_on = exists().where(
        StudyEvent.enrolment_id == Enrolment.id,
        StudyEvent.kind == STEP,
        or_(*((StudyEvent.wave_id == wave) & (StudyEvent.id > last) for wave, last in scope.frozen.items()), false()),
    )
    rows = select(
        went_on.label("went_on_since"), *OF_WHOM, StudyVersion.number.label("version"), Enrolment.device,
        Enrolment.stratum, Arm.name.label("arm"), Enrolment.assigned_at, Enrolment.stage, Enrolment.enrolled_at,
        Enrolment.ended_at, extra_time.label("extra_time"), *DATA_OF,
    )  # fmt: skip
    joined = of_people(rows, scope).join(StudyVersion, StudyVersion.id == Enrolment.study_version_id)
    return StoredTable("enrolments", columns, joined.outerjoin(Arm, Arm.id == Enrolment.arm_id))


def _submissions(scope: ExportScope) -> StoredTable:
    columns = (
        PARTICIPANT,
        WAVE,
        data_column(scope),
        Column("recruiter", "text", "Who sent the person.", "prolific | connect | link; mturk: before it closed"),
        Column("status", "text", "The recruiter's status of the visit.",
               "active | submitted | approved | partial | screened_out | rejected | returned | timed_out"),
        time_column("created_at", "When the visit began."),
        time_column("changed_at", "When the status was last changed."),
    )  # fmt: skip
    rows = select(
        *OF_WHOM, Submission.recruiter, Submission.status, Submission.created_at, Submission.changed_at, *DATA_OF
    )
    joined = rows.join(Enrolment, Enrolment.id == Submission.enrolment_id)
    return StoredTable("submissions", columns, of_people(joined, scope).order_by(Submission.id))


IDS = (
    PARTICIPANT,
    WAVE,
    Column("recruiter", "text", "Who sent the person.",
           "prolific | connect | link, or mturk in waves from before it closed"),
    Column("external_id", "text", "The recruiter's id of the person.", "empty once it was removed"),
    Column("submission_id", "text", "The recruiter's id of the visit.",
           "empty once it was removed, and without a visit"),
)  # fmt: skip


def ids(scope: ExportScope) -> StoredTable:
    """The recruiters' ids of people and of their visits."""
    identity = RecruitmentIdentity
    rows = (
        select(*OF_WHOM, identity.recruiter, identity.external_id, Submission.external_id.label("submission_id"))
        .join(Participant, Participant.id == identity.participant_id)
        .join(Enrolment, Enrolment.participant_id == Participant.id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .outerjoin(Submission, (Submission.enrolment_id == Enrolment.id) & (Submission.recruiter == identity.recruiter))
        .where(Enrolment.wave_id.in_(scope.waves))
        .order_by(Wave.id, Enrolment.id, identity.id, Submission.id)
    )
    return StoredTable("ids", IDS, rows)
