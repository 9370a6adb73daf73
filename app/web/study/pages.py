"""The pages of a person in a study, at one address: the page of the due step, and what is sent to it.

Back, a refresh, a second tab and another device with the private link all lead to the person's current step.
"""

from flask import redirect, render_template, request, url_for
from sqlalchemy import select
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.errors import NotAllowed
from app.core.queues import enqueue_turn
from app.matches.engine import ABORTED
from app.matches.lobby import person_in
from app.models import SeatRow
from app.registry import PERSON
from app.studies import answers, idle, matches, payments
from app.studies.participant_steps import CONSENT, DEBRIEF, INSTRUCTIONS, MATCH, PRACTICE, QUIZ
from app.studies.progress import StudyProgress
from app.web.seats import hold, settings
from app.web.study import page_context
from app.web.study.blueprint import blueprint
from app.web.study.entry import remember
from app.web.study.limits import may_agree
from app.web.study.page_texts import agreed_text, debrief_text, instructions_page
from app.web.study.participant import for_participant, to_page, write_progress
from app.web.study.survey_return import return_url


@blueprint.get("/me/<token>")
@for_participant
def page(session: Session, progress: StudyProgress) -> AnyResponse | str:
    """The page of the step that is due; in a match, the match."""
    remember(str(progress.enrolment.token))
    match = matches.due(session, progress)
    if match is not None and match.status != "over":
        seat = select(SeatRow.seat).where(SeatRow.match_id == match.id, SeatRow.kind == PERSON)
        return _to_match(match.id, session.scalars(seat).one())
    if match is not None:
        write_progress(session, progress, _after_match)
    return _page_due(session, progress)


@blueprint.post("/me/<token>")
@for_participant
def send(session: Session, progress: StudyProgress) -> AnyResponse | tuple[str, int]:
    """Process what was sent for a step. If that is not the due step, nothing changes."""
    # No database accepts NUL in a text, but some input methods and programs send it.
    form = {name: [text.replace("\0", "") for text in texts] for name, texts in request.form.lists()}
    key, text = request.form.get("step", ""), _text_agreed_to(session, progress)
    if answers.asks_for_place(session, progress, key, form) and not may_agree():
        return _page_due(session, progress, form=form, crowded=True), 429
    try:
        outcome = write_progress(session, progress, lambda own, locked: answers.take(own, locked, key, form, text))
    except NotAllowed:  # consent given while the wave is paused
        return _page_due(session, progress, form=form, paused=True), 409
    if outcome.errors:
        return _page_due(session, progress, form=form, errors=outcome.errors), 400
    if (match := outcome.begun) is None:
        return to_page()
    if match.model_to_move:
        enqueue_turn(settings().broker_url, match.id)
    return _to_match(match.id, person_in(match))


@blueprint.post("/me/<token>/here")
@for_participant
def here(session: Session, progress: StudyProgress) -> AnyResponse:
    """A person says that they are still there on a page that was open for a long time; what they wrote there is
    kept.
    """
    write_progress(session, progress, idle.say_here)
    return to_page()


@blueprint.get("/me/<token>/rules")
@for_participant
def rules(session: Session, progress: StudyProgress) -> AnyResponse | str:
    """The most recently read instructions once more, as long as the games that they are for are being played."""
    was_read = any(step.kind == INSTRUCTIONS for step in progress.steps[: progress.enrolment.step + 1])
    if not was_read or progress.step.kind not in (INSTRUCTIONS, QUIZ, PRACTICE, MATCH):
        return to_page()
    return render_template("study/rules.html", **page_context.common(session, progress), **instructions_page(progress))


@blueprint.get("/me/<token>/agreed")
@for_participant
def agreed(session: Session, progress: StudyProgress) -> str:
    """What the person was asked to agree to, to read again or print."""
    context = page_context.common(session, progress) | page_context.consent(session, progress)
    return render_template("study/agreed.html", **context)


def _page_due(session: Session, progress: StudyProgress, **sent: object) -> str:
    lapse = matches.lapse_to_ask_about(session, progress)
    if lapse is not None:
        return render_template("study/still-there.html", **page_context.still_there(session, progress, lapse))
    context = page_context.page(session, progress)
    if progress.step.kind == "survey":
        outside = (question.id for question in context["questions"] if question.kind == "outside")
        context["return_urls"] = {each: return_url(progress, each) for each in outside}
    return render_template(f"study/{progress.step.kind}.html", **{"form": {}, "errors": {}, **context, **sent})


def _text_agreed_to(session: Session, progress: StudyProgress) -> str:
    """The text agreed to at the due step; empty if there is none."""
    if progress.step.kind == CONSENT:
        return agreed_text(session, progress)
    return debrief_text(progress) if progress.step.kind == DEBRIEF else ""


def _after_match(session: Session, progress: StudyProgress) -> None:
    """Do what follows the end of a match, unless it is played again: that begins with a button press."""
    match = matches.due(session, progress)
    if match is not None and match.reason != ABORTED:
        matches.after(session, progress, progress.step)
    payments.record_owed(session, progress)


def _to_match(match_id: str, seat: int) -> AnyResponse:
    """Redirect to a match that is being played, with the person in the seat."""
    hold(match_id, seat)
    return redirect(url_for("play.match", match_id=match_id), 303)
