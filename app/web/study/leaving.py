"""The ways out of a study: stop now, delete my data, no more training, get my data, and report a problem; for ever."""

from collections.abc import Callable, Mapping

from flask import redirect, render_template, request
from flask_babel import format_date
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.errors import Invalid
from app.core.extensions import db, reading
from app.models import Participant
from app.studies import matches, payments, withdrawal
from app.studies.consents import may_train
from app.studies.endings import TECHNICAL, WITHDRAWN, EndingName
from app.studies.forget import delete_unusable_files
from app.studies.participant_steps import MATCH, PRACTICE
from app.studies.progress import Way, find_way_by_token, has_played
from app.studies.reports import REASONS, keep_report, read_reason
from app.web.form_writes import write
from app.web.language import use_language
from app.web.own_data import data_file
from app.web.seats import settings
from app.web.study import page_context
from app.web.study.blueprint import blueprint, way_url
from app.web.study.page_texts import deadline_words, vendors

STOP, DELETE, NO_TRAINING = "stop", "delete", "no training"
_LONGEST_REPORT = 4000


@blueprint.get("/me/<token>/leave")
def leave(token: str) -> str:
    """The acts, each with what it does and what it does not."""
    return _page(token)


@blueprint.post("/me/<token>/leave")
def act(token: str) -> AnyResponse | str:
    """Do one of them. Deleting asks once more."""
    wanted = request.form.get("act", "")
    if wanted == DELETE and request.form.get("sure") != "yes":
        return _page(token, asking=True)
    if wanted in _ACTS:
        write(lambda session: _ACTS[wanted](session, find_way_by_token(session, token, lock=True)))
        if wanted == DELETE:
            delete_unusable_files(db.engine, settings().home)
    if wanted == STOP:
        return redirect(way_url(token), 303)
    return _page(token, was_done=wanted if wanted in _ACTS else "")


@blueprint.get("/me/<token>/data.json")
def get_data(token: str) -> AnyResponse:
    """A file of everything about the person."""
    with reading() as session:
        participant_id = find_way_by_token(session, token).enrolment.participant_id
    return data_file(participant_id)


@blueprint.get("/me/<token>/report")
def report(token: str) -> str:
    """What went wrong, by one of a few reasons, and in the person's own words."""
    return _report_page(token)


@blueprint.post("/me/<token>/report")
def send_report(token: str) -> AnyResponse | tuple[str, int] | str:
    """Keep the report for the experimenter, and end the study if the person wants to leave."""
    try:
        reason = read_reason(request.form.get("reason", ""))
    except Invalid as error:
        return _report_page(token, errors={"reason": error}, form=request.form), 400
    text = request.form.get("text", "").strip()[:_LONGEST_REPORT]
    leaves = request.form.get("then") == "leave"

    def keep(session: Session) -> None:
        way = find_way_by_token(session, token, lock=True)
        match = matches.of_step(session, way, way.step) if way.step.kind in (PRACTICE, MATCH) else None
        keep_report(session, way, reason, text, None if match is None else match.id)
        if leaves and way.enrolment.ending is None:
            withdrawal.leave(session, way, _ending_by_report(session, way))

    write(keep)
    if leaves:
        return redirect(way_url(token), 303)
    return _report_page(token, sent=True)


def _ending_by_report(session: Session, way: Way) -> EndingName:
    """How somebody ends who leaves with a report: who has played loses no pay by it."""
    return TECHNICAL if has_played(session, way.enrolment.id) else WITHDRAWN


def _report_page(token: str, **more: object) -> str:
    with reading() as session:
        found = find_way_by_token(session, token)
        use_language(found.design.language)
        ending = _ending_by_report(session, found)
        pay = payments.owed_now(session, found, ending) if page_context.can_leave(found) else None
        context = page_context.common(session, found) | {"reasons": REASONS, "pay": pay, "most": _LONGEST_REPORT}
    return render_template("study/report.html", **{"errors": {}, "form": {}, "sent": False, **context, **more})


def _page(token: str, **more: object) -> str:
    with reading() as session:
        found = find_way_by_token(session, token)
        use_language(found.design.language)
        participant = session.get_one(Participant, found.enrolment.participant_id)
        last = withdrawal.last_day(session, participant.id)
        context = page_context.common(session, found) | {
            "pay": payments.owed_now(session, found, WITHDRAWN) if page_context.can_leave(found) else None,
            "last_day": None if last is None else format_date(last, "long"),
            "delete_until": deadline_words(found.design.privacy.delete_my_data_until),
            "erased": participant.erased_at is not None,
            "asked_training": found.design.consent.training == "ask",
            "may_train": may_train(session, participant.id),
            "vendors": vendors(session, found.version),
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
