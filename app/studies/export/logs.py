"""The logs in an archive: of the matches, and of the events in the waves."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.matches.export_matches import IN_ORDER
from app.models import Enrolment, EventRow, MatchRow, Participant, StudyEvent
from app.studies.export.columns import streamed
from app.studies.export.scope import ExportScope
from app.studies.reports import STEPS, WORDS

IDS_EXPORTED = "ids exported"  # in the log of a wave; about experimenters, so it is in no export
_OF_EXPERIMENTERS = (IDS_EXPORTED, *STEPS)  # experimenters looking at ids or handling reports
# What a public log may contain about an event; everything else may contain people's words.
_SHOWN_IN_LOG = (
    "step", "ending", "stratum", "slot", "arm", "match", "replaces", "reported", "device", "recruiter", "submission",
    "number", "status", "base", "bonus", "amount", "first", "factor", "door",
)  # fmt: skip
_WORDS_OF_EVENTS = ("text", "reason", "detail", "invisible", "data")


def match_events(session: Session, scope: ExportScope) -> Iterator[Mapping[str, Any]]:
    """The logs of all matches, one object per event."""
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
    """The events in the waves, one object per event.

    It leaves out who looked at ids or handled reports, and words of people who had all data deleted.
    """
    statement = (
        select(
            StudyEvent.kind, StudyEvent.body, StudyEvent.at, StudyEvent.wave_id, Participant.code, Participant.erased_at
        )
        .outerjoin(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .outerjoin(Participant, Participant.id == Enrolment.participant_id)
        .where(scope.events, StudyEvent.kind.not_in(_OF_EXPERIMENTERS))
        .order_by(StudyEvent.id)
    )
    for row in streamed(session, statement):
        body = row.body
        if row.erased_at is not None:  # later messages to us are not data of the study
            body = {name: value for name, value in body.items() if name not in WORDS}
        if scope.public:
            body = {name: value for name, value in body.items() if name in _SHOWN_IN_LOG}
        wave = scope.waves[row.wave_id].name
        yield {"wave": wave, "participant": row.code, "kind": row.kind, "body": body, "at": row.at.isoformat()}
