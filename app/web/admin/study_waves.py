"""A wave as it runs: what needs review, how far people got, arms, money, and the people in it."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, Invalid, Phrase
from app.core.extensions import reading
from app.models import Wave
from app.studies import places, store, waves
from app.studies.assignment_list import import_list, list_of, read_list, terms_of
from app.studies.cost import most_a_place
from app.studies.design import StudyDesign
from app.studies.enrolment import person_hash
from app.studies.monitor import funnel, inbox, incidents
from app.studies.monitor.recruiter import STATUSES, against_recruiter
from app.studies.monitor.waves import FoundWave, models_by_label, wave_by_id, with_a_place
from app.studies.quantities import CENT, rounded
from app.studies.visits import done_elsewhere
from app.studies.wave_file import WaveFile, link_path, wave_warnings
from app.studies.wave_terms import CAP, CLOSES, PLACES, change_terms
from app.web.admin.blueprint import blueprint
from app.web.admin.spending_note import used_up_for
from app.web.admin.study_lists import people_listed
from app.web.form_writes import write
from app.web.forms import pressed, typed_minute, typed_whole
from app.web.seats import settings
from app.web.threads import off_loop


class WaveMoney(NamedTuple):
    """The money that a wave has spent and may still spend under its cap, with the recruiter's fee."""

    settled: Decimal
    reserved: Decimal
    cap: Decimal
    fee: Decimal
    most: Decimal  # for one person

    @property
    def free(self) -> Decimal:
        """What is left under the cap."""
        return max(Decimal(0), self.cap - self.settled - self.reserved)

    @property
    def room(self) -> int:
        """How many more people fit under the cap, each at the highest pay."""
        return int(self.free // self.most) if self.most else 0


@blueprint.get("/studies/waves/<int:wave_id>")
def wave_page(wave_id: int) -> ResponseReturnValue:
    """One wave; the URL may select which of its people are listed."""
    return _wave_page(wave_id)


@blueprint.post("/studies/waves/<int:wave_id>")
def act_on_wave(wave_id: int) -> ResponseReturnValue:
    """Pause, reopen, close, freeze or change a wave, or make it follow a list of arms, depending on the pressed
    button.
    """
    try:
        pressed(_ACTIONS)(wave_id, current_user.name)
    except (Invalid, Conflict) as error:
        return _wave_page(wave_id, error)
    return redirect(url_for("admin.wave_page", wave_id=wave_id), 303)


def _action_in_one_write(act: Callable[[Session, Wave, str], None]) -> Callable[[int, str], None]:
    """An action that only writes."""
    return lambda wave_id, by: write(lambda session: act(session, wave_by_id(session, wave_id).wave, by))


def _change_wave_terms(wave_id: int, by: str) -> None:
    terms = _read_terms()
    write(lambda session: change_terms(session, wave_by_id(session, wave_id).wave, terms, by))


def _read_terms() -> Mapping[str, Any]:
    """The changes to a wave, from the form. Raises Invalid."""
    form = {name: request.form.get(name, "").strip() for name in (PLACES, CAP, CLOSES)}
    places = typed_whole(form[PLACES], PLACES)
    return {PLACES: places, CAP: form[CAP], CLOSES: typed_minute(form[CLOSES]) or None}


def _take_list(wave_id: int, by: str) -> None:
    file = request.files.get("list")
    if file is None or not file.filename:
        raise Invalid("list", expected=Phrase("a CSV table"), got=Phrase("none"))
    content, name, secret = file.read(), file.filename, settings().secret_key

    with reading() as session:
        terms = terms_of(session, wave_by_id(session, wave_id).wave)
    found = off_loop(read_list, content, name, terms, lambda each: person_hash(secret, terms.recruiter, each))
    write(lambda session: import_list(session, wave_by_id(session, wave_id).wave, found, by))


_ACTIONS: Mapping[str, Callable[[int, str], None]] = {
    "pause": _action_in_one_write(waves.pause), "reopen": _action_in_one_write(waves.reopen),
    "close": _action_in_one_write(waves.close),
    "freeze": _action_in_one_write(waves.freeze), "list": _take_list, "change": _change_wave_terms,
}  # fmt: skip


def _wave_page(wave_id: int, refused: AppError | None = None) -> ResponseReturnValue:
    with reading() as session:
        found = wave_by_id(session, wave_id)
        design, file = store.design_of(found.version), waves.settings_of(found.wave)
        listed_people = people_listed(session, found.wave)
        refused = refused or listed_people.refused
        figures = funnel.wave_figures(session, found.wave, design)
        models = models_by_label(session, found.version, design)
        broken, latest_broken = incidents.broken_matches(session, wave_id)
        page = render_template(
            "admin/wave.html",
            **found._asdict(),
            design=design,
            file=file,
            link=recruitment_link(found, file),
            figures=figures,
            hourly=_hourly(design, figures.median_minutes),
            money=money_of(session, found.wave, design, file),
            listed=list_of(session, wave_id),
            assigned=any(each.completed or each.here or each.ended for each in figures.arms),
            warned=list(wave_warnings(design, file)) if found.wave.status == waves.OPEN else [],
            reports=inbox.inbox(session, wave_id, each=True),
            reported=inbox.how_many(session, wave_id),
            elsewhere=done_elsewhere(session, found.wave),
            visits=against_recruiter(session, wave_id),
            visit_states=STATUSES,
            broken=broken,
            latest_broken=latest_broken,
            models=models if found.wave.frozen_at else None,
            used_up=used_up_for(models.values()) if found.wave.frozen_at is None else None,
            people=listed_people,
            cent=CENT,
            refused=refused,
        )
    return page, refused.status if refused else 200


def _hourly(design: StudyDesign, minutes: float | None) -> Decimal | None:
    """The base pay per hour, given the time that people took."""
    return rounded(design.pay.base * 60 / Decimal(minutes)) if minutes else None


def recruitment_link(found: FoundWave, file: WaveFile) -> str:
    """The link that a recruiter gives to people, with placeholders for their ids."""
    return settings().public_url + link_path(found.study.name, file)


def money_of(session: Session, wave: Wave, design: StudyDesign, file: WaveFile) -> WaveMoney:
    """The money of a wave at this moment."""
    together = places.committed(session, wave)
    here = with_a_place(session, wave.id)
    most = most_a_place(design) * (1 + file.fee)
    reserved = most * here  # people who have only arrived have no share yet
    return WaveMoney(max(Decimal(0), together - reserved), reserved, file.most_spent, file.fee, most)
