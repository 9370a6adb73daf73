"""Payments owed to the people of a wave, and the batches by which recruiters pay them; all data of a wave as an
archive.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal

from flask import Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, Invalid, NotFound
from app.core.extensions import reading
from app.core.validation import whole_number
from app.models import PaymentBatch, Wave
from app.studies import batches, payments, store, waves
from app.studies.due import due as due_people
from app.studies.monitor import inbox
from app.studies.monitor.pay import adjustments, batch_sums, parts, unsettled
from app.studies.monitor.waves import wave_by_id
from app.studies.pay_doubts import UNKNOWN, held_back, pay_doubts
from app.studies.progress import StudyProgress
from app.studies.quantities import CENT
from app.studies.reports import NEW
from app.studies.visits import last_table
from app.web.admin.blueprint import blueprint
from app.web.admin.study_lists import batches_listed
from app.web.admin.study_people import ONCE, adjust, leave_out, pay_despite_doubt, refused_field, reverse
from app.web.form_writes import write_once
from app.web.forms import form_language, pressed

_FIELDS = ("batch", "person", "amount", "reason", "over_cap", "adjustment", "set_aside")
_Action = Callable[[Session, Wave, Mapping[str, str], str], None]
_MOST_BATCHES = 10**6
_SHOWN = 100  # people listed of those in the next batch


@blueprint.get("/studies/waves/<int:wave_id>/pay")
def wave_pay(wave_id: int) -> str:
    """The payments owed but in no batch yet, all batches, and all adjustments."""
    return _pay_page(wave_id)


@blueprint.post("/studies/waves/<int:wave_id>/pay")
def act_on_pay(wave_id: int) -> ResponseReturnValue:
    """Draft batches, advance one, take a draft back, or adjust a payment, depending on the pressed button."""
    action, by = request.form.get("action", ""), current_user.name
    form = {**{name: request.form.get(name, "").strip() for name in _FIELDS}, "language": form_language()}
    try:
        act = pressed(_ACTIONS)
        write_once(
            lambda session: act(session, wave_by_id(session, wave_id).wave, form, by), without_key=action in ONCE
        )
    except (Invalid, Conflict, NotFound) as error:
        return _pay_page(wave_id, error), error.status
    return redirect(url_for("admin.wave_pay", wave_id=wave_id), 303)


def _draft_batch(session: Session, wave: Wave, form: Mapping[str, str], by: str) -> None:
    batches.draft(session, wave, by, set_aside=form["set_aside"])


def _batch_marking_action(status: str) -> _Action:
    def mark(session: Session, wave: Wave, form: Mapping[str, str], by: str) -> None:
        batches.mark(session, _batch(session, wave, form["batch"]), status, by)

    return mark


def _discard(session: Session, wave: Wave, form: Mapping[str, str], by: str) -> None:
    batches.discard(session, _batch(session, wave, form["batch"]), by)


def _of_person(act: Callable[[Session, StudyProgress, Mapping[str, str], str], None]) -> _Action:
    def on_person(session: Session, wave: Wave, form: Mapping[str, str], by: str) -> None:
        act(session, payments.find_progress_by_code(session, wave, form["person"]), form, by)

    return on_person


_ACTIONS: Mapping[str, _Action] = {
    "draft": _draft_batch, batches.UPLOADED: _batch_marking_action(batches.UPLOADED),
    batches.CONFIRMED: _batch_marking_action(batches.CONFIRMED),
    "discard": _discard, "adjust": _of_person(adjust), "reverse": _of_person(reverse),
    "keep": _of_person(pay_despite_doubt), "leave out": _of_person(leave_out),
}  # fmt: skip


def _batch(session: Session, wave: Wave, number: str) -> PaymentBatch:
    return batches.find_batch(session, wave, whole_number(number, "batch", 1, _MOST_BATCHES))


@blueprint.get("/studies/waves/<int:wave_id>/pay/<int:number>")
def batch_file(wave_id: int, number: int) -> Response:
    """The file of a batch in its recruiter's format: the same bytes each time."""
    with reading() as session:
        found = batches.find_batch(session, wave_by_id(session, wave_id).wave, number)
        file = batches.batch_file(session, found)
    response = Response(file.content, mimetype="text/csv" if file.name.endswith(".csv") else "text/plain")
    response.headers["Content-Disposition"] = f'attachment; filename="{file.name}"'
    return response


def _pay_page(wave_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        found = wave_by_id(session, wave_id)
        design = store.design_of(found.version)
        everybody = due_people(session, found.wave)
        held = held_back(session, found.wave, everybody)
        due = [each for each in everybody if each.enrolment_id not in held]
        doubts = pay_doubts(session, found.wave)
        unknown = [each for each in doubts if each.kind == UNKNOWN]  # everybody, before the first table
        return render_template(
            "admin/wave-pay.html",
            **found._asdict(),
            design=design,
            file=waves.settings_of(found.wave),
            due=due[:_SHOWN],
            parts=parts(session, due[:_SHOWN]),
            due_people=len(due),
            due_sum=sum((each.amount for each in due), Decimal(0)),
            batches=batches_listed(session, found.wave),
            sums=batch_sums(batches.batches_of(session, found.wave)),
            new_reports=inbox.inbox(session, wave_id, state=NEW, each=True),
            new_count=inbox.how_many(session, wave_id, state=NEW),
            doubts=[each for each in doubts if each.kind != UNKNOWN] + unknown[:_SHOWN],
            unknown_people=len(unknown),
            unknown_shown=_SHOWN,
            table=last_table(session, found.wave),
            adjustments=(adjusted := adjustments(session, wave_id)),
            adjust_key=str(max((each.payment.id for each in adjusted), default=0)),
            unsettled=unsettled(session, wave_id),
            form={name: request.form.get(name, "") for name in _FIELDS},
            cent=CENT,
            refused=None if refused is None else refused_field(refused),
        )
