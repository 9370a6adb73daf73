"""Tables of people: who came, what they agreed to, their enrolments and visits, and how recruiters name them."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, false, or_, select

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
    DATA_OF,
    PARTICIPANT,
    TIME,
    WAVE,
    StoredTable,
    data_column,
    of_people,
    text_column,
    time_column,
)
from app.studies.export.scope import ExportScope
from app.studies.extra_time import EXTRA_TIME
from app.studies.participant_steps import DEBRIEF
from app.studies.progress import STEP


def tables(scope: ExportScope) -> list[StoredTable]:
    """All tables of people that name nobody as a recruiter does."""
    return [
        StoredTable("participants", _PARTICIPANTS, _people(scope)),
        consents(scope),
        StoredTable("enrolments", _enrolment_columns(scope), _enrolments(scope)),
        StoredTable("submissions", _submission_columns(scope), _submissions(scope)),
    ]


def consents(scope: ExportScope) -> StoredTable:
    """What people agreed to, until the waves were frozen or, with what came since, until now."""
    return StoredTable("consents", _consent_columns(scope), _consents(scope))


def ids(scope: ExportScope) -> StoredTable:
    """How recruiters name people and their visits."""
    return StoredTable("ids", _IDS, _ids(scope))


_PARTICIPANTS = (
    PARTICIPANT,
    time_column("created_at", "When the person first came to the study."),
    Column("deleted", "boolean", "Whether the person had all data deleted: texts and answers are gone everywhere.",
           "true | false", lambda row: row.erased_at is not None),
)  # fmt: skip


def _people(scope: ExportScope) -> Select[Any]:
    own = select(Enrolment.participant_id).where(Enrolment.wave_id.in_(scope.waves))
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Participant.created_at, Participant.erased_at,
    )  # fmt: skip
    return select(*columns).where(Participant.id.in_(own)).order_by(Participant.id)


def _consent_columns(scope: ExportScope) -> tuple[Column, ...]:
    return (
        PARTICIPANT,
        text_column("kind", "What was asked.", "participation | training"),
        text_column("text_version", "The SHA-256 of the text that was read.", "64 hexadecimal digits"),
        Column("given", "boolean", "What was answered.", "true | false"),
        time_column("at", "When it was answered."),
        Column("withdrawn_at", "time", "When it was withdrawn.", f"{TIME}; empty if it was not", _withdrawn_at(scope)),
    )


def _consents(scope: ExportScope) -> Select[Any]:
    own = select(Enrolment.participant_id).where(Enrolment.wave_id.in_(scope.waves))
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Consent.kind, Consent.text_version, Consent.given, Consent.at,
        Consent.withdrawn_at,
    )  # fmt: skip
    return (
        select(*columns)
        .join(Participant, Participant.id == Consent.participant_id)
        .where(Consent.participant_id.in_(own), *_until_frozen(scope))
        .order_by(Participant.id, Consent.id)
    )


def _until_frozen(scope: ExportScope) -> list[ColumnElement[bool]]:
    if scope.since_freeze or scope.frozen_at is None:
        return []
    return [Consent.at <= scope.frozen_at]


def _withdrawn_at(scope: ExportScope) -> Callable[[Any], Any]:
    def read(row: Any) -> Any:
        later = row.withdrawn_at is not None and scope.frozen_at is not None and row.withdrawn_at > scope.frozen_at
        return None if later and not scope.since_freeze else row.withdrawn_at

    return read


def _enrolment_columns(scope: ExportScope) -> tuple[Column, ...]:
    return (
        PARTICIPANT,
        WAVE,
        Column("version", "integer", "The version of the study.", "from 1"),
        text_column("device", "What the person came with.", "desktop | tablet | phone"),
        text_column("stratum", "Within which the arm was drawn.", "empty where all are one"),
        text_column("arm", "The arm.", "a name; empty before it was drawn"),
        time_column("assigned_at", "When the arm was drawn.", f"{TIME}; empty before that"),
        Column("stage", "text", "On which kind of page the person was last.", "consent | quiz | match | done | …",
               lambda row: DEBRIEF if row.went_on_since else row.stage),
        text_column("ending", "How it ended.", f"{' | '.join(PROLIFIC)}; empty for who is under way"),
        data_column(scope),
        Column("extra_time", "number", "How many times as long as others the person had for matches, as given last.",
               "1.5; empty for the same time as others"),
        time_column("enrolled_at", "When the person came in."),
        time_column("ended_at", "When it ended.", f"{TIME}; empty for who is under way"),
    )  # fmt: skip


def _enrolments(scope: ExportScope) -> Select[Any]:
    extra_time = (
        select(StudyEvent.body["factor"].as_string())
        .where(StudyEvent.enrolment_id == Enrolment.id, StudyEvent.kind == EXTRA_TIME)
        .order_by(StudyEvent.id.desc())
        .limit(1)
        .correlate(Enrolment)
        .scalar_subquery()
    )
    # In a frozen wave everybody has ended, and only the debrief can be gone on from.
    went_on = exists().where(
        StudyEvent.enrolment_id == Enrolment.id,
        StudyEvent.kind == STEP,
        or_(*((StudyEvent.wave_id == wave) & (StudyEvent.id > last) for wave, last in scope.frozen.items()), false()),
    )
    columns: tuple[Any, ...] = (
        went_on.label("went_on_since"),
        Participant.code.label("participant"), Wave.name.label("wave"), StudyVersion.number.label("version"),
        Enrolment.device, Enrolment.stratum, Arm.name.label("arm"), Enrolment.assigned_at, Enrolment.stage,
        Enrolment.enrolled_at, Enrolment.ended_at, extra_time.label("extra_time"), *DATA_OF,
    )  # fmt: skip
    return (
        of_people(select(*columns), scope)
        .join(StudyVersion, StudyVersion.id == Enrolment.study_version_id)
        .outerjoin(Arm, Arm.id == Enrolment.arm_id)
    )


def _submission_columns(scope: ExportScope) -> tuple[Column, ...]:
    return (
        PARTICIPANT,
        WAVE,
        data_column(scope),
        text_column("recruiter", "Who sent the person.", "prolific | connect | link; mturk: before it closed"),
        text_column("status", "What the recruiter makes of the visit.",
              "active | submitted | approved | partial | screened_out | rejected | returned | timed_out"),
        time_column("created_at", "When the visit began."),
        time_column("changed_at", "When the status was last changed."),
    )  # fmt: skip


def _submissions(scope: ExportScope) -> Select[Any]:
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Wave.name.label("wave"), Submission.recruiter, Submission.status,
        Submission.created_at, Submission.changed_at, *DATA_OF,
    )  # fmt: skip
    joined = select(*columns).join(Enrolment, Enrolment.id == Submission.enrolment_id)
    return of_people(joined, scope).order_by(Submission.id)


_IDS = (
    PARTICIPANT,
    WAVE,
    text_column(
        "recruiter", "Who sent the person.", "prolific | connect | link, or mturk in waves of before it closed"
    ),
    text_column("external_id", "How the recruiter names the person.", "empty once it was removed"),
    text_column(
        "submission_id", "How the recruiter names the visit.", "empty once it was removed, and without a visit"
    ),
)


def _ids(scope: ExportScope) -> Select[Any]:
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Wave.name.label("wave"), RecruitmentIdentity.recruiter,
        RecruitmentIdentity.external_id, Submission.external_id.label("submission_id"),
    )  # fmt: skip
    joined = (
        select(*columns)
        .join(Participant, Participant.id == RecruitmentIdentity.participant_id)
        .join(Enrolment, Enrolment.participant_id == Participant.id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .outerjoin(
            Submission,
            (Submission.enrolment_id == Enrolment.id) & (Submission.recruiter == RecruitmentIdentity.recruiter),
        )
        .where(Enrolment.wave_id.in_(scope.waves))
    )
    return joined.order_by(Wave.id, Enrolment.id, RecruitmentIdentity.id, Submission.id)
