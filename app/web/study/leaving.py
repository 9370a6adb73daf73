"""How people leave a study: stop now, delete my data, no more training, get my data, and report a problem; always
available.
"""

from collections.abc import Callable, Mapping

from flask import render_template, request
from flask_babel import format_date
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.errors import Invalid
from app.core.extensions import db
from app.models import Participant
from app.publication.published import published_with
from app.studies import matches, payments, withdrawal
from app.studies.consents import publication_consent, training_consent, withdraw_publication, withdraw_training
from app.studies.endings import TECHNICAL, WITHDRAWN, EndingName
from app.studies.forget import delete_unusable_files
from app.studies.progress import StudyProgress, has_played
from app.studies.reports import REASONS, keep_report, read_reason
from app.web.own_data import data_file
from app.web.seats import settings
from app.web.study import page_context
from app.web.study.blueprint import blueprint
from app.web.study.page_texts import deadline_words, vendors
from app.web.study.participant import for_participant, to_page, write_progress

STOP, DELETE, NO_TRAINING, NO_PUBLICATION = "stop", "delete", "no training", "no publication"
_LONGEST_REPORT = 4000


@blueprint.get("/me/<token>/leave")
@for_participant
def leave(session: Session, progress: StudyProgress) -> str:
    """The actions, each with what it does and what it does not do."""
    return _leave_page(session, progress)


@blueprint.post("/me/<token>/leave")
@for_participant
def act(session: Session, progress: StudyProgress) -> AnyResponse | str:
    """Carry out one of the actions. Deleting asks for confirmation."""
    wanted = request.form.get("act", "")
    if wanted == DELETE and request.form.get("sure") != "yes":
        return _leave_page(session, progress, asking=True)
    if wanted in _ACTS:
        write_progress(session, progress, _ACTS[wanted])
        if wanted == DELETE:
            delete_unusable_files(db.engine, settings().home)
    if wanted == STOP:
        return to_page()
    return _leave_page(session, progress, was_done=wanted if wanted in _ACTS else "")


@blueprint.get("/me/<token>/data.json")
@for_participant
def get_data(session: Session, progress: StudyProgress) -> AnyResponse:
    """A file of everything about the person."""
    participant_id = progress.enrolment.participant_id
    session.rollback()  # the file is read on its own connection, which may take long
    return data_file(participant_id)


@blueprint.get("/me/<token>/report")
@for_participant
def report(session: Session, progress: StudyProgress) -> str:
    """The form for a problem: one of a few reasons, and the person's own words."""
    return _report_page(session, progress)


@blueprint.post("/me/<token>/report")
@for_participant
def send_report(session: Session, progress: StudyProgress) -> AnyResponse | tuple[str, int] | str:
    """Keep the report for the experimenter, and end the study if the person wants to leave."""
    try:
        reason = read_reason(request.form.get("reason", ""))
    except Invalid as error:
        return _report_page(session, progress, errors={"reason": error}, form=request.form), 400
    text = request.form.get("text", "").strip()[:_LONGEST_REPORT]
    leaves = request.form.get("then") == "leave"

    def keep(own: Session, locked: StudyProgress) -> None:
        match = matches.due(own, locked)
        keep_report(own, locked, reason, text, None if match is None else match.id)
        if leaves and locked.enrolment.ending is None:
            withdrawal.leave(own, locked, _ending_by_report(own, locked))

    write_progress(session, progress, keep)
    return to_page() if leaves else _report_page(session, progress, sent=True)


def _ending_by_report(session: Session, progress: StudyProgress) -> EndingName:
    """The ending of a person who leaves with a report: one who has played loses no pay by it."""
    return TECHNICAL if has_played(session, progress.enrolment.id) else WITHDRAWN


def _report_page(session: Session, progress: StudyProgress, **more: object) -> str:
    ending = _ending_by_report(session, progress)
    context = page_context.common(session, progress) | {
        "reasons": REASONS,
        "pay": payments.owed_now(session, progress, ending) if progress.can_leave else None,
        "most": _LONGEST_REPORT,
    }
    return render_template("study/report.html", **{"errors": {}, "form": {}, "sent": False, **context, **more})


def _leave_page(session: Session, progress: StudyProgress, **more: object) -> str:
    participant = session.get_one(Participant, progress.enrolment.participant_id)
    last = withdrawal.last_day(session, participant.id)
    context = page_context.common(session, progress) | {
        "pay": payments.owed_now(session, progress, WITHDRAWN) if progress.can_leave else None,
        "last_day": None if last is None else format_date(last, "long"),
        "delete_until": deadline_words(progress.design.privacy.delete_my_data_until),
        "erased": participant.erased_at is not None,
        "asked_training": progress.design.consent.training == "ask",
        "may_train": training_consent(session, participant.id),
        "asked_publication": progress.design.consent.publication == "ask",
        "published": [
            {"name": row.name, "target": row.target, "day": format_date(row.sent_at, "long")}
            for row in published_with(session, participant.id)
        ],
        "may_publish": publication_consent(session, participant.id),
        "vendors": vendors(session, progress.version),
    }
    return render_template("study/leave.html", **{"asking": False, "was_done": "", **context, **more})


def _stop_taking_part(session: Session, progress: StudyProgress) -> None:
    withdrawal.leave(session, progress)


def _delete(session: Session, progress: StudyProgress) -> None:
    _stop_taking_part(session, progress)
    withdrawal.delete_data(session, progress)


def _no_training(session: Session, progress: StudyProgress) -> None:
    withdraw_training(session, progress.enrolment.participant_id)


def _no_publication(session: Session, progress: StudyProgress) -> None:
    withdraw_publication(session, progress.enrolment.participant_id)


_ACTS: Mapping[str, Callable[[Session, StudyProgress], None]] = {
    STOP: _stop_taking_part,
    DELETE: _delete,
    NO_TRAINING: _no_training,
    NO_PUBLICATION: _no_publication,
}
