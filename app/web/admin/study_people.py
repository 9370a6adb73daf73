"""One person of a wave: their steps, matches and payments, and what an experimenter can do for them or about them."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy.orm import Session

from app.errors import AppError, Conflict, FieldError, Invalid, NotFound, Phrase, either
from app.extensions import db, reading
from app.models import Participant
from app.studies import extra_time, forget, payments, removal, store, withdrawal
from app.studies.monitor.person import PersonDetail, person
from app.studies.progress import Way, find_way
from app.studies.quantities import CENT
from app.studies.steps import steps
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_scores import in_thread
from app.web.form_writes import write
from app.web.forms import RefusedField
from app.web.seats import settings

_FIELDS = ("amount", "reason", "factor")


@blueprint.get("/studies/waves/<int:wave_id>/people/<int:enrolment_id>")
def study_person(wave_id: int, enrolment_id: int) -> str:
    """One person by the number of their enrolment."""
    return _page(wave_id, enrolment_id)


@blueprint.post("/studies/waves/<int:wave_id>/people/<int:enrolment_id>")
def act_on_person(wave_id: int, enrolment_id: int) -> ResponseReturnValue:
    """Adjust what somebody is paid, give them time, remove them, or withdraw for them, as the pressed button says."""
    action, by = request.form.get("action", ""), current_user.name
    form = {name: request.form.get(name, "") for name in _FIELDS}
    try:
        if action not in _ACTIONS:
            raise Invalid("action", expected=either(_ACTIONS), got=action)
        with reading() as session:
            _detail(session, wave_id, enrolment_id)
        write(lambda session: _ACTIONS[action](session, find_way(session, enrolment_id, lock=True), form, by))
    except (Invalid, Conflict) as error:
        return _page(wave_id, enrolment_id, error), error.status
    if action in ("forget", "no training"):
        home = settings().home
        in_thread(db.engine, lambda own: forget.delete_unusable_files(own, home))
    return redirect(url_for("admin.study_person", wave_id=wave_id, enrolment_id=enrolment_id), 303)


def _adjust(session: Session, way: Way, form: Mapping[str, str], by: str) -> None:
    payments.adjust(session, way, read_amount(form["amount"]), form["reason"], by)


def _remove(session: Session, way: Way, form: Mapping[str, str], by: str) -> None:
    removal.remove(session, way, form["reason"], by)


def _withdraw(session: Session, way: Way, _form: Mapping[str, str], _by: str) -> None:
    withdrawal.stop(session, way)
    session.flush()
    payments.settle(session, way)


def _forget(session: Session, way: Way, _form: Mapping[str, str], _by: str) -> None:
    forget.forget_person(session, way.enrolment.participant_id)


def _no_training(session: Session, way: Way, _form: Mapping[str, str], _by: str) -> None:
    withdrawal.no_more_training(session, session.get_one(Participant, way.enrolment.participant_id))


def _give_time(session: Session, way: Way, form: Mapping[str, str], by: str) -> None:
    extra_time.give(session, way, extra_time.read_factor(form["factor"]), by)


_ACTIONS: Mapping[str, Callable[[Session, Way, Mapping[str, str], str], None]] = {
    "adjust": _adjust, "remove": _remove, "withdraw": _withdraw, "forget": _forget, "no training": _no_training,
    "extra time": _give_time,
}  # fmt: skip


def read_amount(text: str) -> Decimal:
    """An amount as it was typed. Raises Invalid."""
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        raise Invalid("amount", expected=Phrase("an amount such as 1.50 or -0.25"), got=text) from None


def refused_field(error: AppError) -> RefusedField:
    """An error at its field. What elsewhere is called a reason is how a match ended."""
    if isinstance(error, FieldError) and error.field == "reason":
        error = type(error)("reason", **{**error.parts, "subject": Phrase("Reason")})
    return RefusedField(error.field or "", error)


def _detail(session: Session, wave_id: int, enrolment_id: int) -> PersonDetail:
    """Raises NotFound for a person who is in another wave."""
    detail = person(session, enrolment_id)
    if detail.enrolment.wave_id != wave_id:
        raise NotFound("enrolment", expected=Phrase("one of this wave"), got=enrolment_id)
    return detail


def _page(wave_id: int, enrolment_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        detail = _detail(session, wave_id, enrolment_id)
        design = store.design_of(detail.found.version)
        way = steps(design)
        return render_template(
            "admin/study-person.html",
            **detail.found._asdict(),
            detail=detail,
            design=design,
            step=way[detail.enrolment.step],
            step_of={step.key: step for step in way},
            form={name: request.form.get(name, "") for name in _FIELDS},
            factor=extra_time.factor_of(session, enrolment_id),
            cent=CENT,
            refused=None if refused is None else refused_field(refused),
        )
