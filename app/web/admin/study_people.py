"""One person of a wave: their steps, matches and payments, and the actions that an experimenter can take."""

from collections.abc import Callable, Mapping

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, FieldError, Invalid, NotFound, Phrase
from app.core.extensions import db, reading
from app.core.typed_numbers import read_amount
from app.core.validation import whole_number
from app.studies import consents, extra_time, forget, pay_doubts, payments, store, withdrawal
from app.studies.monitor.person import PersonDetail, person
from app.studies.participant_steps import steps
from app.studies.progress import StudyProgress, find_progress
from app.studies.quantities import CENT, places_of
from app.web.admin.blueprint import blueprint
from app.web.form_writes import write_once
from app.web.forms import RefusedField, form_language, pressed
from app.web.seats import settings
from app.web.threads import in_thread

_FIELDS = ("amount", "reason", "over_cap", "adjustment", "factor")
_MOST_ADJUSTMENTS = 10**6
ONCE = ("adjust", "reverse")  # actions that do harm if repeated


@blueprint.get("/studies/waves/<int:wave_id>/people/<int:enrolment_id>")
def study_person(wave_id: int, enrolment_id: int) -> str:
    """One person by the number of their enrolment."""
    return _person_page(wave_id, enrolment_id)


@blueprint.post("/studies/waves/<int:wave_id>/people/<int:enrolment_id>")
def act_on_person(wave_id: int, enrolment_id: int) -> ResponseReturnValue:
    """Adjust a person's payment, give them time, remove them, or withdraw for them, depending on the pressed button."""
    action, by = request.form.get("action", ""), current_user.name
    form = {**{name: request.form.get(name, "") for name in _FIELDS}, "language": form_language()}
    try:
        act = pressed(_ACTIONS)
        with reading() as session:
            _person_of_wave(session, wave_id, enrolment_id)
        write_once(
            lambda session: act(session, find_progress(session, enrolment_id, lock=True), form, by),
            without_key=action in ONCE,
        )
    except (Invalid, Conflict, NotFound) as error:
        return _person_page(wave_id, enrolment_id, error), error.status
    if action in ("forget", "no training"):
        home = settings().home
        in_thread(db.engine, lambda own: forget.delete_unusable_files(own, home))
    return redirect(url_for("admin.study_person", wave_id=wave_id, enrolment_id=enrolment_id), 303)


def _remove_person(session: Session, progress: StudyProgress, form: Mapping[str, str], by: str) -> None:
    withdrawal.remove(session, progress, form["reason"], by)


def _withdraw_person(session: Session, progress: StudyProgress, _form: Mapping[str, str], _by: str) -> None:
    withdrawal.stop(session, progress)
    session.flush()
    payments.record_owed(session, progress)


def _forget(session: Session, progress: StudyProgress, _form: Mapping[str, str], _by: str) -> None:
    forget.forget_person(session, progress.enrolment.participant_id)


def _no_training(session: Session, progress: StudyProgress, _form: Mapping[str, str], _by: str) -> None:
    consents.withdraw_training(session, progress.enrolment.participant_id)


def _no_publication(session: Session, progress: StudyProgress, _form: Mapping[str, str], _by: str) -> None:
    consents.withdraw_publication(session, progress.enrolment.participant_id)


def _give_time(session: Session, progress: StudyProgress, form: Mapping[str, str], by: str) -> None:
    extra_time.give(session, progress, extra_time.read_factor(form["factor"], form["language"]), by)


def adjust(session: Session, progress: StudyProgress, form: Mapping[str, str], by: str) -> None:
    """Adjust a person's payment as a form says. Raises Invalid."""
    places = places_of(progress.design.pay.currency)
    amount = read_amount(form["amount"], "amount", form["language"], places=places, signed=True, such="1.50 or -0.25")
    payments.adjust(session, progress, amount, form["reason"], by, over_cap=form["over_cap"])


def reverse(session: Session, progress: StudyProgress, form: Mapping[str, str], by: str) -> None:
    """Reverse an adjustment as a form says. Raises Invalid, Conflict and NotFound."""
    number = whole_number(form["adjustment"], "adjustment", 1, _MOST_ADJUSTMENTS)
    payments.reverse(session, progress, number, form["reason"], by, over_cap=form["over_cap"])


def pay_despite_doubt(session: Session, progress: StudyProgress, form: Mapping[str, str], by: str) -> None:
    """Decide to pay a person despite a doubt. Raises Invalid and Conflict."""
    pay_doubts.decide(session, progress, keep=True, reason=form["reason"], by=by)


def leave_out(session: Session, progress: StudyProgress, form: Mapping[str, str], by: str) -> None:
    """Decide to leave a person out of batches again. Raises Invalid and Conflict."""
    pay_doubts.decide(session, progress, keep=False, reason=form["reason"], by=by)


_ACTIONS: Mapping[str, Callable[[Session, StudyProgress, Mapping[str, str], str], None]] = {
    "adjust": adjust, "reverse": reverse, "remove": _remove_person, "withdraw": _withdraw_person, "forget": _forget,
    "no training": _no_training, "no publication": _no_publication, "extra time": _give_time, "keep": pay_despite_doubt,
    "leave out": leave_out,
}  # fmt: skip


def refused_field(error: AppError) -> RefusedField:
    """An error at its field. Elsewhere, "reason" is the name for how a match ended."""
    if isinstance(error, FieldError) and error.field == "reason":
        error = error.of("reason", subject=Phrase("Reason"))
    return RefusedField(error.field or "", error)


def _person_of_wave(session: Session, wave_id: int, enrolment_id: int) -> PersonDetail:
    """A person of the wave. Raises NotFound for a person in another wave."""
    detail = person(session, enrolment_id)
    if detail.enrolment.wave_id != wave_id:
        raise NotFound("enrolment", expected=Phrase("one of this wave"), got=enrolment_id)
    return detail


def _person_page(wave_id: int, enrolment_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        detail = _person_of_wave(session, wave_id, enrolment_id)
        design = store.design_of(detail.found.version)
        all_steps = steps(design)
        return render_template(
            "admin/study-person.html",
            **detail.found._asdict(),
            detail=detail,
            may_publish=consents.publication_consent(session, detail.participant.id),
            design=design,
            step=all_steps[detail.enrolment.step],
            step_of={step.key: step for step in all_steps},
            form={name: request.form.get(name, "") for name in _FIELDS},
            factor=extra_time.factor_of(session, enrolment_id),
            cent=CENT,
            adjust_key=str(max((each.id for each in detail.payments), default=0)),
            number_of=payments.number_of,
            refused=None if refused is None else refused_field(refused),
        )
