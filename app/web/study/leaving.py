"""The ways out of a study: stop now, delete my data, no more training, get my data, and report a problem; for ever."""

from collections.abc import Callable, Mapping

from flask import render_template, request
from flask_babel import format_date
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.errors import Invalid
from app.core.extensions import db
from app.models import Participant
from app.studies import matches, payments, withdrawal
from app.studies.consents import may_train
from app.studies.endings import TECHNICAL, WITHDRAWN, EndingName
from app.studies.forget import delete_unusable_files
from app.studies.progress import Way, has_played
from app.studies.reports import REASONS, keep_report, read_reason
from app.web.own_data import data_file
from app.web.seats import settings
from app.web.study import page_context
from app.web.study.blueprint import blueprint
from app.web.study.page_texts import deadline_words, vendors
from app.web.study.participant import for_participant, to_page, write_way

STOP, DELETE, NO_TRAINING = "stop", "delete", "no training"
_LONGEST_REPORT = 4000


@blueprint.get("/me/<token>/leave")
@for_participant
def leave(session: Session, way: Way) -> str:
    """The acts, each with what it does and what it does not."""
    return _ways_out(session, way)


@blueprint.post("/me/<token>/leave")
@for_participant
def act(session: Session, way: Way) -> AnyResponse | str:
    """Do one of them. Deleting asks once more."""
    wanted = request.form.get("act", "")
    if wanted == DELETE and request.form.get("sure") != "yes":
        return _ways_out(session, way, asking=True)
    if wanted in _ACTS:
        write_way(session, way, _ACTS[wanted])
        if wanted == DELETE:
            delete_unusable_files(db.engine, settings().home)
    if wanted == STOP:
        return to_page()
    return _ways_out(session, way, was_done=wanted if wanted in _ACTS else "")


@blueprint.get("/me/<token>/data.json")
@for_participant
def get_data(session: Session, way: Way) -> AnyResponse:
    """A file of everything about the person."""
    participant_id = way.enrolment.participant_id
    session.rollback()  # the file is read on a connection of its own, which may take long
    return data_file(participant_id)


@blueprint.get("/me/<token>/report")
@for_participant
def report(session: Session, way: Way) -> str:
    """What went wrong, by one of a few reasons, and in the person's own words."""
    return _report_page(session, way)


@blueprint.post("/me/<token>/report")
@for_participant
def send_report(session: Session, way: Way) -> AnyResponse | tuple[str, int] | str:
    """Keep the report for the experimenter, and end the study if the person wants to leave."""
    try:
        reason = read_reason(request.form.get("reason", ""))
    except Invalid as error:
        return _report_page(session, way, errors={"reason": error}, form=request.form), 400
    text = request.form.get("text", "").strip()[:_LONGEST_REPORT]
    leaves = request.form.get("then") == "leave"

    def keep(own: Session, locked: Way) -> None:
        match = matches.due(own, locked)
        keep_report(own, locked, reason, text, None if match is None else match.id)
        if leaves and locked.enrolment.ending is None:
            withdrawal.leave(own, locked, _ending_by_report(own, locked))

    write_way(session, way, keep)
    return to_page() if leaves else _report_page(session, way, sent=True)


def _ending_by_report(session: Session, way: Way) -> EndingName:
    """How somebody ends who leaves with a report: who has played loses no pay by it."""
    return TECHNICAL if has_played(session, way.enrolment.id) else WITHDRAWN


def _report_page(session: Session, way: Way, **more: object) -> str:
    ending = _ending_by_report(session, way)
    context = page_context.common(session, way) | {
        "reasons": REASONS,
        "pay": payments.owed_now(session, way, ending) if page_context.can_leave(way) else None,
        "most": _LONGEST_REPORT,
    }
    return render_template("study/report.html", **{"errors": {}, "form": {}, "sent": False, **context, **more})


def _ways_out(session: Session, way: Way, **more: object) -> str:
    participant = session.get_one(Participant, way.enrolment.participant_id)
    last = withdrawal.last_day(session, participant.id)
    context = page_context.common(session, way) | {
        "pay": payments.owed_now(session, way, WITHDRAWN) if page_context.can_leave(way) else None,
        "last_day": None if last is None else format_date(last, "long"),
        "delete_until": deadline_words(way.design.privacy.delete_my_data_until),
        "erased": participant.erased_at is not None,
        "asked_training": way.design.consent.training == "ask",
        "may_train": may_train(session, participant.id),
        "vendors": vendors(session, way.version),
    }
    return render_template("study/leave.html", **{"asking": False, "was_done": "", **context, **more})


def _stop(session: Session, way: Way) -> None:
    withdrawal.leave(session, way)


def _delete(session: Session, way: Way) -> None:
    _stop(session, way)
    withdrawal.delete_data(session, way)


def _no_training(session: Session, way: Way) -> None:
    withdrawal.no_more_training(session, session.get_one(Participant, way.enrolment.participant_id))


_ACTS: Mapping[str, Callable[[Session, Way], None]] = {STOP: _stop, DELETE: _delete, NO_TRAINING: _no_training}
