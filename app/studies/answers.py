"""What a participant submits at a step: checked, stored, and acted on. Nothing here commits.

A form for a step that is not due changes nothing: one that is sent twice, from an old page or from a second tab leads
to the due page.
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
from app.studies.enrolment import readmit, take_place
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
from app.studies.progress import STILL_THERE, StudyProgress, advance, answer, end, log_event
from app.studies.quiz import QuizState, are_right, quiz_state, read_answers
from app.studies.survey import SurveyForm, Values, first_value, read_survey, typed_numbers
from app.studies.texts import first_condition

YES, NO = "yes", "no"
HERE = "here"  # the field by which people say that they are still there
PARTNERS = (PERSON, "computer", EITHER, "not sure")  # a person's guesses about a partner


class StepOutcome(NamedTuple):
    """The result of a submitted form: its errors, by field, or the match that has begun."""

    errors: Mapping[str, FieldError] = {}
    begun: StoredMatch | None = None


def take(session: Session, progress: StudyProgress, key: str, form: SurveyForm, text: str = "") -> StepOutcome:
    """Process the form submitted for the step with that key. `progress` is locked; `text` is the text consented to.

    Raises NotAllowed if the participant agrees while the wave is paused.
    """
    step = progress.step
    if step.key != key or step.kind not in _TAKERS:
        return StepOutcome()
    return _TAKERS[step.kind](session, progress, form, text)


def finish(session: Session, progress: StudyProgress, name: EndingName, **facts: Any) -> None:
    """End an enrolment, if it has not ended, and write what is owed for it."""
    end(session, progress, name, **facts)
    payments.record_owed(session, progress)


def draw_arm(session: Session, progress: StudyProgress) -> None:
    """Draw the arm if the due page depends on it."""
    if progress.enrolment.plan is None and shows_arm(progress.design, progress.step):
        assign(session, progress)


def seed_of(progress: StudyProgress, step: Step) -> str:
    """The seed for shuffling the options of a page: the order differs for each person and page."""
    return f"{progress.enrolment.token}/{step.key}"


def due_questions(progress: StudyProgress) -> Questions:
    """The questions of the due survey."""
    return progress.design.survey.parts[progress.step.part or "end"]


def earlier_answers(progress: StudyProgress) -> Values:
    """The answers given in earlier surveys; for a question asked several times, the last answer."""
    found: dict[str, Any] = {}
    for step in progress.steps[: progress.enrolment.step]:
        if step.kind == SURVEY:
            found |= progress.values(step.key)
    return found


def quiz_now(progress: StudyProgress) -> QuizState:
    """The due quiz, at the current attempt."""
    quiz = progress.design.quiz
    if quiz is None:
        raise ValueError("expected a design with a quiz")
    seed = seed_of(progress, progress.step)
    return quiz_state(progress.design, quiz, _current_or_first_condition(progress), progress.quiz_attempts, seed)


def outside_key(step: Step) -> str:
    """The key under which returns from surveys elsewhere are stored."""
    return f"outside {step.key}"


def returned(progress: StudyProgress) -> list[str]:
    """The questions of the due step whose outside survey the participant left by its last link."""
    return list(progress.values(outside_key(progress.step)))


def come_back(session: Session, progress: StudyProgress, key: str, question: str) -> None:
    """Record that a participant came back from a survey elsewhere, at the step where it is asked."""
    if progress.step.key == key:
        answer(progress, outside_key(progress.step), {**dict.fromkeys(returned(progress), True), question: True})
    session.flush()


def asks_for_place(session: Session, progress: StudyProgress, key: str, form: SurveyForm) -> bool:
    """Whether the submitted form would take a place of a wave for people."""
    if progress.step.key != key or progress.step.kind != CONSENT or progress.enrolment.wave_id is None:
        return False
    says_yes = first_value(form, "answer") != NO and first_value(form, "part") == YES
    return says_yes and not session.get_one(Wave, progress.enrolment.wave_id).rehearsal


# ---- Each kind of step -------------------------------------------------------------


def _consent(session: Session, progress: StudyProgress, form: SurveyForm, text: str) -> StepOutcome:
    if first_value(form, "answer") == NO:
        finish(session, progress, DECLINED)
        return StepOutcome()
    if first_value(form, "part") != YES:
        return _unanswered("part", Phrase("a tick, or “No” below"))
    take_place(session, progress)
    if progress.enrolment.ending is not None:
        payments.record_owed(session, progress)
        return StepOutcome()
    asked = progress.design.consent
    training = first_value(form, "training") == YES if asked.training == "ask" else None
    publication = first_value(form, "publication") == YES if asked.publication == "ask" else None
    consents.give(session, progress, participation=True, training=training, publication=publication, text=text)
    return _go_on(session, progress)


def _done(session: Session, progress: StudyProgress, _form: SurveyForm, _text: str) -> StepOutcome:
    """Check again whether a participant who was sent away before agreeing can begin."""
    readmit(session, progress)
    return StepOutcome()


def _instructions(session: Session, progress: StudyProgress, _form: SurveyForm, _text: str) -> StepOutcome:
    return _go_on(session, progress)


def _take_quiz_answers(session: Session, progress: StudyProgress, form: SurveyForm, _text: str) -> StepOutcome:
    design, quiz, key = progress.design, progress.design.quiz, progress.step.key
    if quiz is None:
        return _go_on(session, progress)
    state = quiz_now(progress)
    if first_value(form, "attempt") != str(state.attempt):
        return StepOutcome()  # the form of an earlier attempt
    try:
        given = read_answers(state, {name: values[0] for name, values in form.items() if values})
    except Invalid as error:
        return StepOutcome({error.field or "": error})
    attempts = progress.quiz_attempts
    right = are_right(design, quiz, _current_or_first_condition(progress), attempts, given)
    now = datetime.now(UTC).isoformat()
    answer(progress, key, {"attempts": [*attempts, {"at": now, "answers": given, "right": right}]})
    if right:
        return _go_on(session, progress)
    if state.left == 1:
        finish(session, progress, QUIZ_FAILED, step=key)
    return StepOutcome()


def _take_survey_answers(session: Session, progress: StudyProgress, form: SurveyForm, _text: str) -> StepOutcome:
    asked = due_questions(progress)
    values, errors = read_survey(asked, form, earlier_answers(progress), returned(progress), progress.design.language)
    if errors:
        return StepOutcome(errors)
    answer(progress, progress.step.key, values, typed_numbers(asked, form, values))
    return _go_on(session, progress)


def _match(session: Session, progress: StudyProgress, form: SurveyForm, _text: str) -> StepOutcome:
    """Begins the due match, or moves on from a finished one, to the next match if that is the next step."""
    row = matches.due(session, progress)
    if row is not None and row.status == "over":
        replacement = matches.after(session, progress, progress.step)
        if replacement is not None:
            return StepOutcome(begun=replacement)
        if progress.enrolment.ending is not None:
            payments.record_owed(session, progress)
            return StepOutcome()
        if matches.lapse_to_ask_about(session, progress) is not None:
            return _still_there(session, progress, form, row.id)
        _go_on(session, progress)
        if progress.step.kind not in (PRACTICE, MATCH):
            return StepOutcome()
    draw_arm(session, progress)
    return StepOutcome(begun=matches.start(session, progress, progress.step))


def _still_there(session: Session, progress: StudyProgress, form: SurveyForm, match_id: str) -> StepOutcome:
    """Moves on once the participant has confirmed that they are there; a form from another page does not confirm it."""
    if first_value(form, HERE) != YES:
        return StepOutcome()
    log_event(session, progress, STILL_THERE, {"match": match_id})
    return _go_on(session, progress)


def _take_partner_answer(session: Session, progress: StudyProgress, form: SurveyForm, _text: str) -> StepOutcome:
    sent = first_value(form, "partner")
    if sent not in PARTNERS:
        return _unanswered("partner", Phrase("one of the answers"))
    answer(progress, progress.step.key, {"partner": sent})
    return _go_on(session, progress)


def _take_debrief_answers(session: Session, progress: StudyProgress, form: SurveyForm, text: str) -> StepOutcome:
    """Asks for all consents again. Declining data use deletes the data, once what is owed has been recorded."""
    asked = progress.design.consent
    optional = {"training": asked.training, "publication": asked.publication}
    wanted = ["data", *(name for name, how in optional.items() if how == "ask")]
    errors: dict[str, FieldError] = {}
    for name in wanted:
        if first_value(form, name) not in (YES, NO):
            errors |= _unanswered(name, Phrase("yes or no")).errors
    if errors:
        return StepOutcome(errors)
    keep = first_value(form, "data") == YES
    training = (keep and first_value(form, "training") == YES) if "training" in wanted else None
    publication = (keep and first_value(form, "publication") == YES) if "publication" in wanted else None
    finish(session, progress, COMPLETED)
    consents.give(session, progress, participation=keep, training=training, publication=publication, text=text)
    outcome = _go_on(session, progress)
    if not keep:
        withdrawal.delete_data(session, progress, at_debrief=True)
    return outcome


_TAKERS: Mapping[str, Callable[[Session, StudyProgress, SurveyForm, str], StepOutcome]] = {
    CONSENT: _consent,
    INSTRUCTIONS: _instructions,
    QUIZ: _take_quiz_answers,
    SURVEY: _take_survey_answers,
    PRACTICE: _match,
    MATCH: _match,
    PARTNER: _take_partner_answer,
    DEBRIEF: _take_debrief_answers,
    DONE: _done,
}


def _go_on(session: Session, progress: StudyProgress) -> StepOutcome:
    advance(session, progress, progress.step.key)
    draw_arm(session, progress)
    return StepOutcome()


def _current_or_first_condition(progress: StudyProgress) -> Mapping[str, str]:
    return progress.condition or first_condition(progress.design)


def _unanswered(field: str, expected: Phrase) -> StepOutcome:
    return StepOutcome({field: Invalid(field, expected=expected, got=Phrase("none"))})
