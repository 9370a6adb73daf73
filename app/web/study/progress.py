"""The whole way of a person through a study, at one address: the page of the step that is due, and what is sent to it.

Back, a refresh, a second tab and another device with the private link all lead to where the person is.
"""

from flask import redirect, render_template, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.errors import NotAllowed
from app.core.extensions import reading
from app.core.queues import enqueue_turn
from app.matches.engine import ABORTED
from app.matches.lobby import person_in
from app.matches.stored import StoredMatch
from app.models import SeatRow
from app.registry import PERSON
from app.studies import answers, idle, matches, payments
from app.studies.participant_steps import CONSENT, DEBRIEF, INSTRUCTIONS, MATCH, PRACTICE, QUIZ
from app.studies.progress import Way, find_way_by_token
from app.web.form_writes import write
from app.web.language import use_language
from app.web.limits import may_agree
from app.web.seats import hold, settings
from app.web.study import page_context
from app.web.study.blueprint import blueprint, way_url
from app.web.study.entry import remember
from app.web.study.page_texts import agreed_text, debrief_text, instructions_page
from app.web.study.survey_return import return_url


@blueprint.get("/me/<token>")
def way(token: str) -> AnyResponse | str:
    """The page of the step that is due; in a match, the match."""
    with reading() as session:
        found = find_way_by_token(session, token)
        use_language(found.design.language)
        match_id, seat, over = _match_now(session, found)
    remember(token)
    if match_id is not None and not over:
        hold(match_id, seat)
        return redirect(url_for("play.match", match_id=match_id), 303)
    if over:
        write(lambda session: _after_match(session, token))
    return _page(token)


@blueprint.post("/me/<token>")
def send(token: str) -> AnyResponse | tuple[str, int]:
    """Take what was sent for a step. For another step than the one that is due it changes nothing."""
    # No database takes NUL in a text, which some input methods and programs send.
    form = {name: [text.replace("\0", "") for text in texts] for name, texts in request.form.lists()}
    key = request.form.get("step", "")
    with reading() as session:
        found = find_way_by_token(session, token)
        use_language(found.design.language)
        text = _text_of(session, found)
        agrees = answers.asks_for_place(session, found, key, form)
    if agrees and not may_agree():
        return _page(token, form=form, crowded=True), 429
    try:
        outcome = write(lambda session: answers.take(session, token, key, form, text))
    except NotAllowed:  # who agrees while the wave is paused
        return _page(token, form=form, paused=True), 409
    if outcome.errors:
        return _page(token, form=form, errors=outcome.errors), 400
    if outcome.begun is not None:
        return _seated(outcome.begun)
    return redirect(way_url(token), 303)


@blueprint.post("/me/<token>/here")
def here(token: str) -> AnyResponse:
    """Somebody says that they are still there on a page that was open for long; what they wrote there is kept."""
    write(lambda session: idle.say_here(session, find_way_by_token(session, token, lock=True)))
    return redirect(way_url(token), 303)


@blueprint.get("/me/<token>/rules")
def rules(token: str) -> AnyResponse | str:
    """The instructions that were read last, once more, as long as the games that they are for are played."""
    with reading() as session:
        found = find_way_by_token(session, token)
        use_language(found.design.language)
        read = [step for step in found.steps[: found.enrolment.step + 1] if step.kind == INSTRUCTIONS]
        if not read or found.step.kind not in (INSTRUCTIONS, QUIZ, PRACTICE, MATCH):
            return redirect(way_url(token), 303)
        context = page_context.common(session, found) | instructions_page(found)
    return render_template("study/rules.html", **context)


@blueprint.get("/me/<token>/agreed")
def agreed(token: str) -> str:
    """What the person was asked to agree to, to read again or print."""
    with reading() as session:
        found = find_way_by_token(session, token)
        use_language(found.design.language)
        context = page_context.common(session, found) | page_context.consent_page(
            session, found.version, page_context.recruiter(session, found)
        )
    return render_template("study/agreed.html", **context)


def _page(token: str, **sent: object) -> str:
    with reading() as session:
        found = find_way_by_token(session, token)
        lapse = matches.asked(session, found)
        if lapse is not None:
            return render_template("study/still-there.html", **page_context.still_there(session, found, lapse))
        context = page_context.page(session, found)
        if found.step.kind == "survey":
            context["return_urls"] = {
                question.id: return_url(found, question.id)
                for question in context["questions"]
                if question.kind == "outside"
            }
    return render_template(f"study/{found.step.kind}.html", **{"form": {}, "errors": {}, **context, **sent})


def _text_of(session: Session, found: Way) -> str:
    """What is agreed to at the step that is due; empty where nothing is."""
    if found.step.kind == CONSENT:
        return agreed_text(session, found)
    return debrief_text(found) if found.step.kind == DEBRIEF else ""


def _match_now(session: Session, found: Way) -> tuple[str | None, int, bool]:
    """The match of the step that is due, the person's seat in it, and whether it is over."""
    if found.step.kind not in (PRACTICE, MATCH):
        return None, 0, False
    row = matches.of_step(session, found, found.step)
    if row is None:
        return None, 0, False
    seat = next(each.seat for each in session.query(SeatRow).filter_by(match_id=row.id) if each.kind == PERSON)
    return row.id, seat, row.status == "over"


def _after_match(session: Session, token: str) -> None:
    """What the end of a match means for the way, but for one that is played again: that begins with a press."""
    found = find_way_by_token(session, token, lock=True)
    row = matches.of_step(session, found, found.step) if found.step.kind in (PRACTICE, MATCH) else None
    if row is not None and row.reason != ABORTED:
        matches.after(session, found, found.step)
    payments.settle(session, found)


def _seated(begun: StoredMatch) -> AnyResponse:
    """To a match that has begun, with the person in the seat and the model at work if it begins."""
    if begun.model_to_move:
        enqueue_turn(settings().broker_url, begun.id)
    hold(begun.id, person_in(begun))
    return redirect(url_for("play.match", match_id=begun.id), 303)
