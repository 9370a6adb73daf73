"""A wave as it goes on: what has to be looked at, how far people came, arms, money, and who is in it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy.orm import Session

from app.errors import AppError, Conflict, Invalid, either
from app.extensions import reading
from app.models import Wave
from app.studies import entry, monitor, waves
from app.studies.cost import most_a_place
from app.studies.design import StudyDesign
from app.studies.monitor import FoundWave, PeopleFilter
from app.studies.quantities import CENT, rounded
from app.studies.wave_file import WaveFile
from app.validation import whole_number
from app.web.admin.blueprint import blueprint
from app.web.form_writes import write
from app.web.study.door import door_url

_LARGEST = 2**31 - 1
_ACTIONS = {"pause": waves.pause, "reopen": waves.reopen, "close": waves.close, "freeze": waves.freeze}
# What each recruiter puts into the link of a study, in its own notation.
_PARAMETERS: Mapping[str, str] = {
    "prolific": "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
    "mturk": "",
    "connect": "participantId={{participantId}}&assignmentId={{assignmentId}}&projectId={{projectId}}",
}


class WaveMoney(NamedTuple):
    """What a wave has spent and may yet spend under its cap, with the recruiter's fee."""

    settled: Decimal
    reserved: Decimal
    cap: Decimal
    fee: Decimal

    @property
    def free(self) -> Decimal:
        """What is left under the cap."""
        return max(Decimal(0), self.cap - self.settled - self.reserved)


@blueprint.get("/studies/waves/<int:wave_id>")
def wave_page(wave_id: int) -> ResponseReturnValue:
    """One wave; the address may choose which of its people are listed."""
    return _page(wave_id)


@blueprint.post("/studies/waves/<int:wave_id>")
def act_on_wave(wave_id: int) -> ResponseReturnValue:
    """Pause, reopen, close or freeze a wave, as the pressed button says."""
    action, by = request.form.get("action", ""), current_user.name
    try:
        if action not in _ACTIONS:
            raise Invalid("action", expected=either(_ACTIONS), got=action)
        write(lambda session: _ACTIONS[action](session, monitor.wave_by_id(session, wave_id).wave, by))
    except (Invalid, Conflict) as error:
        return _page(wave_id, error)
    return redirect(url_for("admin.wave_page", wave_id=wave_id), 303)


def _page(wave_id: int, refused: AppError | None = None) -> ResponseReturnValue:
    with reading() as session:
        found = monitor.wave_by_id(session, wave_id)
        design, file = waves.design_of(found.version), waves.settings_of(found.wave)
        try:
            chosen, before = _read_choice()
        except Invalid as error:
            chosen, before, refused = PeopleFilter(), None, refused or error
        figures = monitor.wave_figures(session, found.wave, design)
        broken, latest_broken = monitor.broken_matches(session, wave_id)
        page = render_template(
            "admin/wave.html",
            **found._asdict(),
            design=design,
            file=file,
            link=recruitment_link(found, file),
            figures=figures,
            hourly=_hourly(design, figures.median_minutes),
            money=money_of(session, found.wave, design, file),
            reports=monitor.reports(session, wave_id),
            broken=broken,
            latest_broken=latest_broken,
            models=monitor.models_by_label(session, found.version, design) if found.wave.frozen_at else None,
            people=monitor.people(session, found.wave, design, chosen, before),
            given={name: value for name, value in request.args.items() if name in ("where", "arm", "person") and value},
            first=before is None,
            where=monitor.WHERE,
            cent=CENT,
            refused=refused,
        )
    return page, refused.status if refused else 200


def _hourly(design: StudyDesign, minutes: float | None) -> Decimal | None:
    """What the base comes to in an hour, by the time that people took."""
    return rounded(design.pay.base * 60 / Decimal(minutes)) if minutes else None


def recruitment_link(found: FoundWave, file: WaveFile) -> str:
    """The link that a recruiter gives to people, with what stands for their ids in it."""
    address = door_url(found.study.name, found.wave.name)
    link = file.provider.link
    if link is not None:
        return f"{address}?{urlencode({link.id_parameter: 'ID'})}" if link.id_parameter else address
    parameters = _PARAMETERS[file.provider.name]
    return f"{address}?{parameters}" if parameters else address


def money_of(session: Session, wave: Wave, design: StudyDesign, file: WaveFile) -> WaveMoney:
    """The money of a wave at this moment."""
    together = entry.committed(session, wave)
    here = monitor.here_now(session, wave.id)
    reserved = most_a_place(design) * here * (1 + file.fee)
    return WaveMoney(max(Decimal(0), together - reserved), reserved, file.most_spent, file.fee)


def _read_choice() -> tuple[PeopleFilter, int | None]:
    """Which people are listed, from the address. Raises Invalid."""
    given: Mapping[str, Any] = request.args
    where = given.get("where") or None
    if where is not None and where not in monitor.WHERE:
        raise Invalid("where", expected=either(monitor.WHERE), got=where)
    arm = whole_number(given["arm"], "arm", 1, _LARGEST) if given.get("arm") else None
    before = whole_number(given["before"], "before", 1, _LARGEST) if given.get("before") else None
    return PeopleFilter(where, arm, given.get("person", "").strip() or None), before
