"""The door of a wave: what the study is, for whom, and what it pays. Only the button lets somebody in."""

import secrets
from decimal import Decimal
from typing import NamedTuple

from flask import redirect, render_template, request, session
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.errors import NotAllowed, NotFound, Phrase
from app.extensions import reading
from app.models import StudyVersion, Wave
from app.studies import entry, extra_time
from app.studies.amounts import APPROVING
from app.studies.design import StudyDesign
from app.studies.devices import DESKTOP, TABLET, device_of, is_served
from app.studies.entry import Visitor
from app.studies.payments import settle
from app.studies.store import design_of
from app.studies.wave_file import PARAMETERS, PLAIN_ID, WaveFile
from app.studies.waves import OPEN, find_wave, settings_of
from app.web.form_writes import write
from app.web.language import use_language
from app.web.seats import settings
from app.web.study.blueprint import blueprint, way_url

_LONGEST = 200  # characters of an id of a recruiter


class LinkIds(NamedTuple):
    """What a link says: the ids of the person, of the visit, and of the recruiter's study. Empty where it says none."""

    person: str = ""
    visit: str = ""
    study: str = ""


@blueprint.get("/<study>/<wave>")
def door(study: str, wave: str) -> str:
    """The advertisement. Whoever only looks, a program that fetches links ahead too, leaves nothing behind."""
    return _door(study, wave)


@blueprint.post("/<study>/<wave>")
def come_in(study: str, wave: str) -> AnyResponse | str:
    """Let somebody in, or back to where they were."""
    with reading() as database:
        row = find_wave(database, f"{study}:{wave}")
        file, design, reference = settings_of(row), _design(database, row), row.id
    device = _device()
    visitor = _visitor(file, device)
    if visitor is None or _is_of_another_study(file) or not is_served(design, device):
        return _door(study, wave)
    secret, factor = settings().secret_key, _extra_time(reference, file)

    def enter(database: Session) -> str:
        way = entry.enter(database, database.get_one(Wave, reference), visitor, secret)
        if factor is not None and way.enrolment.ending is None:
            extra_time.give(database, way, factor)
        settle(database, way)
        return str(way.enrolment.token)

    try:
        token = write(enter)
    except NotAllowed:  # paused, closed or frozen, for somebody new: nothing was recorded, and the page says why
        return _door(study, wave)
    return redirect(way_url(token), 303)


@blueprint.get("/preview/<signed>")
def preview(signed: str) -> str:
    """The door of a walk through a version, which is in no wave."""
    found = entry.read_preview(settings().secret_key, signed)
    with reading() as database:
        design = design_of(database.get_one(StudyVersion, found.version_id))
    use_language(design.language)
    return render_template("study/door.html", design=design, preview=True, status=OPEN, served=True, known=True)


@blueprint.post("/preview/<signed>")
def begin_preview(signed: str) -> AnyResponse:
    """Begin a walk through a version."""
    found = entry.read_preview(settings().secret_key, signed)
    device = _device()
    return redirect(
        way_url(write(lambda database: str(entry.enter_preview(database, found, device).enrolment.token))), 303
    )


def _door(study: str, wave: str) -> str:
    with reading() as database:
        row = find_wave(database, f"{study}:{wave}")
        file, design, status, reference = settings_of(row), _design(database, row), row.status, row.id
    use_language(design.language)
    _extra_time(reference, file)
    return render_template(
        "study/door.html",
        design=design,
        status=status,
        served=is_served(design, _device()),
        known=bool(_link_ids(file).person) or _is_open_link(file),
        other_study=_is_of_another_study(file),
        recruiter=file.provider.name,
        gone=file.provider.is_gone,
        address=settings().public_url + request.full_path.rstrip("?"),
    )


def _design(database: Session, wave: Wave) -> StudyDesign:
    return design_of(database.get_one(StudyVersion, wave.study_version_id))


def _visitor(file: WaveFile, device: str) -> Visitor | None:
    """Who comes, by the recruiter's parameters; None for who cannot be told from others, or only looks."""
    person, visit, _ = _link_ids(file)
    if _is_open_link(file):
        person = session.setdefault("link_id", secrets.token_urlsafe(16))
        session.permanent = True
    if not person:
        return None
    return Visitor(file.provider.name, person, device, visit or None)


def _link_ids(file: WaveFile) -> LinkIds:
    """The ids in the address; none at all where one of them cannot be one.

    Who comes to a study at Prolific always says which: a link without that was cut off or changed.
    """
    names = PARAMETERS.get(file.provider.name, (_link_parameter(file) or "", "", ""))
    given = [[each.strip() for each in request.args.getlist(name)] if name else [] for name in names]
    # A placeholder that was not filled in would make one person of all who follow such a link. Where a recruiter
    # appends its parameters by itself, what the link had before them is such a placeholder.
    filled = [[each for each in values if not each.startswith("{{")] for values in given]
    found = LinkIds(*(values[-1] if values else "" for values in filled))
    fits = all(len(each) <= _LONGEST and each.isprintable() for each in found)
    if file.provider.name in APPROVING:  # its files take no other ids, and one would keep all from being paid
        fits = fits and all(PLAIN_ID.fullmatch(each) for each in found if each)
    unfilled = any(values and not own for values, own in zip(given, filled, strict=True))
    lacks_study = file.provider.prolific is not None and not found.study
    return LinkIds() if unfilled or lacks_study or not fits else found


def _is_of_another_study(file: WaveFile) -> bool:
    """Whether the recruiter sent somebody for another one of its studies than that of the wave."""
    given, stated = _link_ids(file).study, file.provider.study
    return bool(given) and stated is not None and given != stated


def _link_parameter(file: WaveFile) -> str | None:
    link = file.provider.link
    return None if link is None else link.id_parameter


def _is_open_link(file: WaveFile) -> bool:
    """Whether the link is the same for all, and a browser a person."""
    return not file.provider.has_ids


def _extra_time(wave_id: int, file: WaveFile) -> Decimal | None:
    """The extra time of a personal link. Raises NotFound for one that was changed, or is another person's."""
    if (token := request.args.get(extra_time.PARAMETER)) is None:
        return None
    link = extra_time.read_token(settings().secret_key, token)
    if link.wave_id != wave_id or link.person not in (None, _link_ids(file).person):
        raise NotFound("link", expected=Phrase("one that Parlor gave out"), got=Phrase("another one"))
    return link.factor


def _device() -> str:
    """The kind of device; a script says more of those that call themselves desktops."""
    found = device_of(request.headers.get("User-Agent", ""))
    if found == DESKTOP and request.form.get("touch") == "yes":
        return TABLET
    return found
