"""The tables that the database gives as they are: people, visits, matches, moves, payments, material and the logs.

Rows come a few at a time, so that memory does not grow with their number. Without ids no column names a person as the
recruiter does; what is public has no words that people chose themselves.
"""

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, aliased

from app.csv_tables import ROWS_AT_ONCE, Column
from app.matches.export import MATCHES, MOVES
from app.matches.export_matches import IN_ORDER
from app.matches.move_timing import COUNTS, MILLISECONDS
from app.models import (
    Arm,
    Consent,
    Enrolment,
    EventRow,
    MatchRow,
    Participant,
    Payment,
    PaymentBatch,
    RecruitmentIdentity,
    SeatRow,
    StudyEvent,
    StudyVersion,
    Submission,
    Wave,
)
from app.registry import PERSON
from app.studies.assignment import ASSIGNMENT
from app.studies.endings import PROLIFIC
from app.studies.export.scope import DataTable, ExportScope
from app.studies.human_claims import claims_to_be_human

IDS_EXPORTED = "ids exported"  # in the log of a wave; of who looked, so in no export itself
_TIME = "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z"
# What a public log may say of what happened; all else may hold words of people.
_SHOWN_IN_LOG = (
    "step", "ending", "stratum", "slot", "arm", "match", "replaces", "reported", "device", "recruiter", "submission",
    "number", "status", "base", "bonus", "amount", "first",
)  # fmt: skip
_WORDS_OF_EVENTS = ("text", "reason", "detail", "invisible", "data")

_own, _mover = aliased(SeatRow), aliased(SeatRow)

PARTICIPANT = Column("participant", "text", "The person, by an id that means nothing elsewhere.", "letters and digits",
                     attrgetter("participant"))  # fmt: skip
WAVE = Column("wave", "text", "The wave.", "a name", attrgetter("wave"))


def _time(name: str, meaning: str, values: str = _TIME) -> Column:
    return Column(name, "time", meaning, values, attrgetter(name))


def _text(name: str, meaning: str, values: str) -> Column:
    return Column(name, "text", meaning, values, attrgetter(name))


def stored_tables(session: Session, scope: ExportScope) -> Iterator[DataTable]:
    """All of them, in the order of the archive."""
    for name, (columns, statement) in _definitions(scope).items():
        yield DataTable(name, columns, streamed(session, statement))
    yield DataTable("material", _MATERIAL, _material(scope))


def streamed(session: Session, statement: Select[Any]) -> Any:
    """The rows of a query, a few at a time."""
    return session.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE})


def _definitions(scope: ExportScope) -> Mapping[str, tuple[tuple[Column, ...], Select[Any]]]:
    found = {
        "participants": (_PARTICIPANTS, _people(scope)),
        "consents": (_CONSENTS, _consents(scope)),
        "enrolments": (_enrolment_columns(scope), _enrolments(scope)),
        "submissions": (_SUBMISSIONS, _submissions(scope)),
        "matches": (_match_columns(scope), _matches(scope)),
        "moves": (_move_columns(scope), _moves(scope)),
        "assignments": (_ASSIGNMENTS, _assignments(scope)),
        "payments": (_payment_columns(scope), _payments(scope)),
    }
    return {**found, "ids": (_IDS, _ids(scope))} if scope.with_ids else found


# ---- People ----------------------------------------------------------------


_PARTICIPANTS = (
    PARTICIPANT,
    _time("created_at", "When the person first came to the study."),
    Column("deleted", "boolean", "Whether the person had all data deleted: texts and answers are gone everywhere.",
           "true | false", lambda row: row.erased_at is not None),
)  # fmt: skip


def _people(scope: ExportScope) -> Select[Any]:
    own = select(Enrolment.participant_id).where(Enrolment.wave_id.in_(scope.waves))
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Participant.created_at, Participant.erased_at,
    )  # fmt: skip
    return select(*columns).where(Participant.id.in_(own)).order_by(Participant.id)


_CONSENTS = (
    PARTICIPANT,
    _text("kind", "What was asked.", "participation | training"),
    _text("text_version", "The SHA-256 of the text that was read.", "64 hexadecimal digits"),
    Column("given", "boolean", "What was answered.", "true | false", attrgetter("given")),
    _time("at", "When it was answered."),
    _time("withdrawn_at", "When it was taken back.", f"{_TIME}; empty if it was not"),
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
        .where(Consent.participant_id.in_(own))
        .order_by(Participant.id, Consent.id)
    )


def _enrolment_columns(scope: ExportScope) -> tuple[Column, ...]:
    return (
        PARTICIPANT,
        WAVE,
        Column("version", "integer", "The version of the study.", "from 1", attrgetter("version")),
        _text("device", "What the person came with.", "desktop | tablet | phone"),
        _text("stratum", "Within which the arm was drawn.", "empty where all are one"),
        _text("arm", "The arm.", "a name; empty before it was drawn"),
        _time("assigned_at", "When the arm was drawn.", f"{_TIME}; empty before that"),
        _text("stage", "On which kind of page the person was last.", "consent | quiz | match | done | …"),
        _text("ending", "How it ended.", f"{' | '.join(PROLIFIC)}; empty for who is under way"),
        Column("data", "text", "Whether the data counts as taken part.", DATA_VALUES,
               lambda row: data_of(scope, row)),
        _time("enrolled_at", "When the person came in."),
        _time("ended_at", "When it ended.", f"{_TIME}; empty for who is under way"),
    )  # fmt: skip


DATA_VALUES = "counts | does not count | under way | withdrawn"


def data_of(scope: ExportScope, row: Any) -> str:
    """Whether the data of an enrolment counts."""
    if row.erased_at is not None:
        return "withdrawn"
    if row.ending is None:
        return "under way"
    design = scope.designs[row.study_version_id]
    return "counts" if design.ending(row.ending, PROLIFIC).keeps_data else "does not count"


def _enrolments(scope: ExportScope) -> Select[Any]:
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Participant.erased_at, Wave.name.label("wave"),
        StudyVersion.number.label("version"), Enrolment.study_version_id, Enrolment.device, Enrolment.stratum,
        Arm.name.label("arm"), Enrolment.assigned_at, Enrolment.stage, Enrolment.ending, Enrolment.enrolled_at,
        Enrolment.ended_at,
    )  # fmt: skip
    return (
        of_people(select(*columns), scope)
        .join(StudyVersion, StudyVersion.id == Enrolment.study_version_id)
        .outerjoin(Arm, Arm.id == Enrolment.arm_id)
    )


def of_people(statement: Select[Any], scope: ExportScope) -> Select[Any]:
    """A query of enrolments beside their participants and waves, as they came in."""
    return (
        statement.join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Enrolment.wave_id.in_(scope.waves))
        .order_by(Wave.id, Enrolment.id)
    )


_SUBMISSIONS = (
    PARTICIPANT,
    WAVE,
    _text("recruiter", "Who sent the person.", "prolific | mturk | connect | link"),
    _text("status", "What the recruiter makes of the visit.",
          "active | submitted | approved | rejected | returned | timed_out"),
    _time("created_at", "When the visit began."),
    _time("changed_at", "When the status was last changed."),
)  # fmt: skip


def _submissions(scope: ExportScope) -> Select[Any]:
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Wave.name.label("wave"), Submission.recruiter, Submission.status,
        Submission.created_at, Submission.changed_at,
    )  # fmt: skip
    joined = select(*columns).join(Enrolment, Enrolment.id == Submission.enrolment_id)
    return of_people(joined, scope).order_by(Submission.id)


_IDS = (
    PARTICIPANT,
    WAVE,
    _text("recruiter", "Who sent the person.", "prolific | mturk | connect | link"),
    _text("external_id", "How the recruiter names the person.", "empty once it was removed"),
    _text("submission_id", "How the recruiter names the visit.", "empty once it was removed, and without a visit"),
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


# ---- Matches ---------------------------------------------------------------


def _planned(row: Any) -> Mapping[str, Any]:
    """What the plan of the person says of a match."""
    plan = row.plan or {}
    matches = plan.get("matches", [])
    if row.position is None or row.position >= len(matches):
        return {}
    found: Mapping[str, Any] = matches[row.position]
    return found


def _condition(factor: str) -> Callable[[Any], Any]:
    return lambda row: _planned(row).get("condition", {}).get(factor)


def _match_columns(scope: ExportScope) -> tuple[Column, ...]:
    return (
        PARTICIPANT,
        WAVE,
        _text("arm", "The person's arm.", "a name"),
        Column("position", "integer", "The number of the match among those that count.", "from 0; empty for practice",
               attrgetter("position")),
        Column("practice", "boolean", "Whether it was for practice, so that it neither counts nor pays.",
               "true | false", lambda row: row.position is None),
        Column("block", "integer", "The number of its block.", "from 0; empty for practice",
               lambda row: _planned(row).get("block")),
        *(Column(f"condition_{factor}", "text", f"The level of {factor} that was planned.",
                 "a label; empty for practice", _condition(factor)) for factor in scope.factors),
        Column("piece", "integer", "The piece of material that was planned, as in material.csv.",
               "from 0; empty for practice and without material", lambda row: _planned(row).get("piece")),
        Column("own_seat", "integer", "Where the person sat.", "0 | 1", attrgetter("own_seat")),
        Column("own_utility", "number", "What the person got, as in utility_0 or utility_1.",
               "7; empty until it is over", lambda row: (row.utility_0, row.utility_1)[row.own_seat]),
        Column("replaces", "text", "The match that a model broke off and that this one stands for.",
               "22 characters; empty for others", lambda row: (row.options or {}).get("replaces")),
        *(column for column in MATCHES.columns if column.name not in _NOT_OF_STUDIES),
    )  # fmt: skip


_NOT_OF_STUDIES = ("round_id", "study_id", "index", "swapped")


def _matches(scope: ExportScope) -> Select[Any]:
    own: tuple[Any, ...] = (
        MatchRow.position, MatchRow.options, _own.seat.label("own_seat"), Enrolment.plan,
        Participant.code.label("participant"), Wave.name.label("wave"), Arm.name.label("arm"),
    )  # fmt: skip
    return (
        MATCHES.statement.add_columns(*own)
        .join(_own, _own.match_id == MatchRow.id)
        .join(Enrolment, Enrolment.id == _own.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .outerjoin(Arm, Arm.id == Enrolment.arm_id)
        .where(Enrolment.wave_id.in_(scope.waves))
        .order_by(_own.seat)
    )


_MEASURED: Mapping[str, str] = {
    "first_input": "from when the person could move to the first input",
    "typing": "from the first input to the last",
    "sent": "from when the person could move to the sending",
    "hidden": "in which the page was hidden",
}


def _of_timing(name: str) -> Callable[[Any], Any]:
    return lambda row: (row.timing or {}).get(name)


def _move_columns(scope: ExportScope) -> tuple[Column, ...]:
    by_person = "empty for a model, and where the browser measured nothing"
    columns = tuple(
        Column(column.name, column.type, column.meaning, "empty, as the export is public", lambda _row: None)
        if scope.public and column.name == "text"
        else column
        for column in MOVES.columns
    )
    return (
        _MOVER,
        *columns,
        *(Column(f"{name}_ms", "number", f"Milliseconds {_MEASURED.get(name, name)}, by the browser's clock.",
                 by_person, _of_timing(name)) for name in MILLISECONDS),
        *(Column(name, "integer", f"What the browser counted as {name}; docs/protocol.md says what each is.",
                 by_person, _of_timing(name)) for name in COUNTS),
        Column("claims_human", "boolean", "Whether a model's text says, in plain words, that a human wrote it.",
               "true | false; empty for a person",
               lambda row: claims_to_be_human(row.body["text"]) if row.seat_kind != PERSON else None),
        Column("target_s", "number", "Seconds after which a model's reply was due.", "empty for a person",
               _of_timing("target")),
        Column("late_s", "number", "Seconds by which a model's reply was later than that.",
               "0 for one in time; empty for a person", _of_timing("late")),
    )  # fmt: skip


_MOVER = Column("participant", "text", "The person who moved.", "empty for a model", attrgetter("participant"))


def _moves(scope: ExportScope) -> Select[Any]:
    return (
        MOVES.statement.add_columns(EventRow.timing, Participant.code.label("participant"))
        .join(_mover, (_mover.match_id == EventRow.match_id) & (_mover.seat == EventRow.seat))
        .outerjoin(Participant, Participant.id == _mover.participant_id)
        .where(EventRow.match_id.in_(scope.matches))
    )


# ---- Assignment, payments, material ----------------------------------------


def _of_body(name: str) -> Callable[[Any], Any]:
    return lambda row: row.body.get(name)


_ASSIGNMENTS = (
    PARTICIPANT,
    WAVE,
    Column("stratum", "text", "Within which the arm was drawn.", "empty where all are one", _of_body("stratum")),
    Column("slot", "integer", "The place in the order of that stratum.", "from 0", _of_body("slot")),
    Column("arm", "integer", "The arm, by its place among those of the design.", "from 0", _of_body("arm")),
    _time("at", "When it was drawn."),
)


def _assignments(scope: ExportScope) -> Select[Any]:
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Wave.name.label("wave"), StudyEvent.body, StudyEvent.at,
    )  # fmt: skip
    return (
        select(*columns)
        .join(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Enrolment.wave_id.in_(scope.waves), StudyEvent.kind == ASSIGNMENT)
        .order_by(StudyEvent.id)
    )


def _payment_columns(scope: ExportScope) -> tuple[Column, ...]:
    return (
        PARTICIPANT,
        WAVE,
        _text("key", "What is paid.", "base | bonus | adjustment 1 | …"),
        Column("amount", "number", "How much; an adjustment may be below 0.", "0.70", attrgetter("amount")),
        _text("currency", "In which currency.", "USD"),
        Column("reason", "text", "Why it was adjusted.", "empty in a public export" if scope.public else "a text",
               lambda row: None if scope.public else row.reason),
        Column("batch", "integer", "The batch that pays it.",
               "from 1; empty for a base that the recruiter pays on approval, and before there is one",
               attrgetter("batch")),
        _text("status", "How far that batch is.", "drafted | uploaded | confirmed; empty without one"),
        _time("created_at", "When it was owed."),
    )  # fmt: skip


def _payments(scope: ExportScope) -> Select[Any]:
    columns: tuple[Any, ...] = (
        Participant.code.label("participant"), Wave.name.label("wave"), Payment.key, Payment.amount, Payment.currency,
        Payment.reason, PaymentBatch.number.label("batch"), PaymentBatch.status, Payment.created_at,
    )  # fmt: skip
    joined = (
        select(*columns)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .outerjoin(PaymentBatch, PaymentBatch.id == Payment.batch_id)
    )
    return of_people(joined, scope).order_by(Payment.id)


_MATERIAL = (
    Column("version", "integer", "The version of the study.", "from 1", lambda row: row[0]),
    Column("piece", "integer", "The number of the piece, as in matches.csv.", "from 0", lambda row: row[1]),
    Column("content", "json", "The piece.", "an object or a word", lambda row: row[2]),
)


def _material(scope: ExportScope) -> Iterator[tuple[int, int, Any]]:
    for version in scope.versions.values():
        for number, piece in enumerate(version.design["material"]):
            yield version.number, number, piece


# ---- Logs ------------------------------------------------------------------


def match_events(session: Session, scope: ExportScope) -> Iterator[Mapping[str, Any]]:
    """The logs of all matches, an object an event."""
    statement = (
        select(EventRow.match_id, EventRow.seq, EventRow.ply, EventRow.body, EventRow.timing, EventRow.at)
        .join(MatchRow, MatchRow.id == EventRow.match_id)
        .where(EventRow.match_id.in_(scope.matches))
        .order_by(*IN_ORDER, EventRow.seq)
    )
    for row in streamed(session, statement):
        body = row.body
        if scope.public:
            body = {name: value for name, value in body.items() if name not in _WORDS_OF_EVENTS}
            if row.body["kind"] == "ended":
                body["reason"] = row.body["reason"]
        yield {
            "match_id": row.match_id, "seq": row.seq, "ply": row.ply, "body": body, "timing": row.timing,
            "at": row.at.isoformat(),
        }  # fmt: skip


def study_events(session: Session, scope: ExportScope) -> Iterator[Mapping[str, Any]]:
    """What happened in the waves, an object an event. Who looked at ids is not in it."""
    statement = (
        select(StudyEvent.kind, StudyEvent.body, StudyEvent.at, StudyEvent.wave_id, Participant.code)
        .outerjoin(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .outerjoin(Participant, Participant.id == Enrolment.participant_id)
        .where(StudyEvent.wave_id.in_(scope.waves), StudyEvent.kind != IDS_EXPORTED)
        .order_by(StudyEvent.id)
    )
    for row in streamed(session, statement):
        body = row.body
        if scope.public:
            body = {name: value for name, value in body.items() if name in _SHOWN_IN_LOG}
        wave = scope.waves[row.wave_id].name
        yield {"wave": wave, "participant": row.code, "kind": row.kind, "body": body, "at": row.at.isoformat()}
