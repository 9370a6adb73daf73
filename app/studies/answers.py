"""What a person sends at a step of the way: checked, kept, and what follows. Nothing here commits.

What is sent for a step that is not due changes nothing: a form that is sent twice, from an old page or from a second
tab leads to the page that is due.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.core.errors import FieldError, Invalid, Phrase
from app.matches.stored import StoredMatch
from app.models import Wave
from app.studies import consents, matches, payments, withdrawal
from app.studies.assignment import assign
from app.studies.design import EITHER, PERSON, Questions
from app.studies.endings import COMPLETED, DECLINED, QUIZ_FAILED, EndingName
from app.studies.enrolment import come_again, take_place
from app.studies.participant_steps import (
    CONSENT,
    DEBRIEF,
    DONE,
    INSTRUCTIONS,
    MATCH,
    PARTNER,
    PRACTICE,
    QUIZ,
    SURVEY,
    Step,
    shows_arm,
)
from app.studies.progress import STILL_THERE, Way, advance, answer, end, note
from app.studies.quiz import QuizState, are_right, quiz_state, read_answers
from app.studies.survey import SurveyForm, Values, read_survey, typed_numbers
from app.studies.texts import first_condition

YES, NO = "yes", "no"
HERE = "here"  # the field by which somebody says that they are still there
PARTNERS = (PERSON, "computer", EITHER, "not sure")  # what a partner may have been, as a person guesses


class StepOutcome(NamedTuple):
    """The result of what was sent: what is wrong with it, by field, or the match that has begun."""

    errors: Mapping[str, FieldError] = {}
    begun: StoredMatch | None = None


def take(session: Session, way: Way, key: str, form: SurveyForm, text: str = "") -> StepOutcome:
    """Take what was sent for the step with that key. `way` is locked; `text` is what a consent was given to.

    Raises NotAllowed for who agrees while the wave is paused.
    """
    step = way.step
    if step.key != key or step.kind not in _TAKERS:
        return StepOutcome()
    return _TAKERS[step.kind](session, way, form, text)


def finish(session: Session, way: Way, name: EndingName, **facts: Any) -> None:
    """End a way, if it has not ended, and write what is owed for it."""
    end(session, way, name, **facts)
    payments.settle(session, way)


def draw_arm(session: Session, way: Way) -> None:
    """Draw the arm if the page that is due depends on it."""
    if way.enrolment.plan is None and shows_arm(way.design, way.step):
        assign(session, way)


def seed_of(way: Way, step: Step) -> str:
    """What options of a page are shuffled by: another order for each person and page."""
    return f"{way.enrolment.token}/{step.key}"


def asked_now(way: Way) -> Questions:
    """The questions of the survey that is due."""
    survey, part = way.design.survey, way.step.part
    by_part = {
        "start": survey.start,
        "after each match": survey.after_each_match,
        "after each block": survey.after_each_block,
        "end": survey.end,
    }
    return by_part[part or "end"]


def earlier_answers(way: Way) -> Values:
    """What was answered in surveys before; of a question that was asked several times, the last answer."""
    found: dict[str, Any] = {}
    for step in way.steps[: way.enrolment.step]:
        if step.kind == SURVEY:
            found |= way.enrolment.answers.get(step.key, {}).get("values", {})
    return found


def quiz_now(way: Way) -> QuizState:
    """The quiz that is due, at the attempt that is."""
    quiz = way.design.quiz
    if quiz is None:
        raise ValueError("expected a design with a quiz")
    attempts = way.enrolment.answers.get(way.step.key, {}).get("values", {}).get("attempts", [])
    return quiz_state(way.design, quiz, _condition(way), attempts, seed_of(way, way.step))


def outside_key(step: Step) -> str:
    """Where it is kept that somebody came back from surveys elsewhere."""
    return f"outside {step.key}"


def returned(way: Way) -> list[str]:
    """The questions of the step that is due whose outside survey was left by its last link."""
    return list(way.enrolment.answers.get(outside_key(way.step), {}).get("values", {}))


def come_back(session: Session, way: Way, key: str, question: str) -> None:
    """Keep that somebody came back from a survey elsewhere, at the step where it is asked."""
    if way.step.key == key:
        answer(way, outside_key(way.step), {**dict.fromkeys(returned(way), True), question: True})
    session.flush()


def asks_for_place(session: Session, way: Way, key: str, form: SurveyForm) -> bool:
    """Whether what was sent would take a place of a wave for people."""
    if way.step.key != key or way.step.kind != CONSENT or way.enrolment.wave_id is None:
        return False
    says_yes = _sent(form, "answer") != NO and _sent(form, "part") == YES
    return says_yes and not session.get_one(Wave, way.enrolment.wave_id).rehearsal


# ---- Each kind of step -------------------------------------------------------------


def _consent(session: Session, way: Way, form: SurveyForm, text: str) -> StepOutcome:
    if _sent(form, "answer") == NO:
        finish(session, way, DECLINED)
        return StepOutcome()
    if _sent(form, "part") != YES:
        return _refused("part", Phrase("a tick, or “No” below"))
    take_place(session, way)
    if way.enrolment.ending is not None:
        payments.settle(session, way)
        return StepOutcome()
    asked = way.design.consent.training == "ask"
    training = _sent(form, "training") == YES if asked else None
    consents.give(session, way, participation=True, training=training, text=text)
    return _go_on(session, way)


def _done(session: Session, way: Way, _form: SurveyForm, _text: str) -> StepOutcome:
    """Whoever was sent away before they had agreed looks once more whether they can begin."""
    come_again(session, way)
    return StepOutcome()


def _instructions(session: Session, way: Way, _form: SurveyForm, _text: str) -> StepOutcome:
    return _go_on(session, way)


def _quiz(session: Session, way: Way, form: SurveyForm, _text: str) -> StepOutcome:
    design, quiz, key = way.design, way.design.quiz, way.step.key
    if quiz is None:
        return _go_on(session, way)
    state = quiz_now(way)
    if _sent(form, "attempt") != str(state.attempt):
        return StepOutcome()  # the form of an attempt before
    try:
        given = read_answers(state, {name: values[0] for name, values in form.items() if values})
    except Invalid as error:
        return StepOutcome({error.field or "": error})
    attempts = way.enrolment.answers.get(key, {}).get("values", {}).get("attempts", [])
    right = are_right(design, quiz, _condition(way), attempts, given)
    now = datetime.now(UTC).isoformat()
    answer(way, key, {"attempts": [*attempts, {"at": now, "answers": given, "right": right}]})
    if right:
        return _go_on(session, way)
    if state.left == 1:
        finish(session, way, QUIZ_FAILED, step=key)
    return StepOutcome()


def _survey(session: Session, way: Way, form: SurveyForm, _text: str) -> StepOutcome:
    asked = asked_now(way)
    values, errors = read_survey(asked, form, earlier_answers(way), returned(way), way.design.language)
    if errors:
        return StepOutcome(errors)
    answer(way, way.step.key, values, typed_numbers(asked, form, values))
    return _go_on(session, way)


def _match(session: Session, way: Way, form: SurveyForm, _text: str) -> StepOutcome:
    """Begins the match that is due, or goes on from one that is over, to the next one if that comes then."""
    row = matches.due(session, way)
    if row is not None and row.status == "over":
        replacement = matches.after(session, way, way.step)
        if replacement is not None:
            return StepOutcome(begun=replacement)
        if way.enrolment.ending is not None:
            payments.settle(session, way)
            return StepOutcome()
        if matches.asked(session, way) is not None:
            return _still_there(session, way, form, row.id)
        _go_on(session, way)
        if way.step.kind not in (PRACTICE, MATCH):
            return StepOutcome()
    draw_arm(session, way)
    return StepOutcome(begun=matches.start(session, way, way.step))


def _still_there(session: Session, way: Way, form: SurveyForm, match_id: str) -> StepOutcome:
    """Goes on to the next page once somebody has said that they are there; a form of another page does not say so."""
    if _sent(form, HERE) != YES:
        return StepOutcome()
    note(session, way, STILL_THERE, {"match": match_id})
    return _go_on(session, way)


def _partner(session: Session, way: Way, form: SurveyForm, _text: str) -> StepOutcome:
    sent = _sent(form, "partner")
    if sent not in PARTNERS:
        return _refused("partner", Phrase("one of the answers"))
    answer(way, way.step.key, {"partner": sent})
    return _go_on(session, way)


def _debrief(session: Session, way: Way, form: SurveyForm, text: str) -> StepOutcome:
    """Asks both consents again. A no to the data deletes it, once it is written what is owed."""
    asked = way.design.consent.training == "ask"
    wanted = ["data", "training"] if asked else ["data"]
    errors: dict[str, FieldError] = {}
    for name in wanted:
        if _sent(form, name) not in (YES, NO):
            errors |= _refused(name, Phrase("yes or no")).errors
    if errors:
        return StepOutcome(errors)
    keep = _sent(form, "data") == YES
    training = (keep and _sent(form, "training") == YES) if asked else None
    finish(session, way, COMPLETED)
    consents.give(session, way, participation=keep, training=training, text=text)
    outcome = _go_on(session, way)
    if not keep:
        withdrawal.delete_data(session, way, at_debrief=True)
    return outcome


_TAKERS: Mapping[str, Callable[[Session, Way, SurveyForm, str], StepOutcome]] = {
    CONSENT: _consent,
    INSTRUCTIONS: _instructions,
    QUIZ: _quiz,
    SURVEY: _survey,
    PRACTICE: _match,
    MATCH: _match,
    PARTNER: _partner,
    DEBRIEF: _debrief,
    DONE: _done,
}


def _go_on(session: Session, way: Way) -> StepOutcome:
    advance(session, way, way.step.key)
    draw_arm(session, way)
    return StepOutcome()


def _condition(way: Way) -> Mapping[str, str]:
    return way.condition or first_condition(way.design)


def _sent(form: SurveyForm, field: str) -> str:
    return next(iter(form.get(field, ())), "")


def _refused(field: str, expected: Phrase) -> StepOutcome:
    return StepOutcome({field: Invalid(field, expected=expected, got=Phrase("none"))})
