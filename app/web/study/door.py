"""The door of a wave: what the study is, for whom, and what it pays. Only the button lets somebody in."""

import secrets
from collections.abc import Mapping

from flask import redirect, render_template, request, session, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.extensions import reading
from app.models import StudyVersion, Wave
from app.studies import entry
from app.studies.design import StudyDesign
from app.studies.devices import DESKTOP, TABLET, device_of, is_served
from app.studies.entry import Visitor
from app.studies.payments import settle
from app.studies.wave_file import LINK, WaveFile
from app.studies.waves import OPEN, design_of, find_wave, settings_of
from app.web.form_writes import write
from app.web.language import use_language
from app.web.seats import settings
from app.web.study.blueprint import blueprint, way_url

MTURK_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
MTURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
_LONGEST = 200  # characters of an id of a recruiter
# By recruiter: the parameters of the person and of the visit.
_PARAMETERS: Mapping[str, tuple[str, str]] = {
    "prolific": ("PROLIFIC_PID", "SESSION_ID"),
    "mturk": ("workerId", "assignmentId"),
    "connect": ("participantId", "assignmentId"),
}


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
    if visitor is None or not is_served(design, device):
        return _door(study, wave)
    secret = settings().secret_key

    def enter(database: Session) -> str:
        way = entry.enter(database, database.get_one(Wave, reference), visitor, secret)
        settle(database, way)
        return str(way.enrolment.token)

    token = write(enter)
    _keep_submit_host()
    return redirect(way_url(token), 303)


@blueprint.get("/preview/<signed>")
def preview(signed: str) -> str:
    """The door of a walk through a version, which is in no wave."""
    found = entry.read_preview(settings().secret_key, signed)
    with reading() as database:
        design = design_of(database.get_one(StudyVersion, found.version_id))
    use_language(design.language)
    return render_template("study/door.html", design=design, preview=True, open=True, served=True, known=True)


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
        file, design, status = settings_of(row), _design(database, row), row.status
    use_language(design.language)
    return render_template(
        "study/door.html",
        design=design,
        open=status == OPEN,
        served=is_served(design, _device()),
        known=bool(_parameters(file)[0]) or _is_open_link(file),
        mturk_preview=request.args.get("assignmentId") == MTURK_PREVIEW,
        address=settings().public_url + request.full_path.rstrip("?"),
    )


def _design(database: Session, wave: Wave) -> StudyDesign:
    return design_of(database.get_one(StudyVersion, wave.study_version_id))


def _visitor(file: WaveFile, device: str) -> Visitor | None:
    """Who comes, by the recruiter's parameters; None for who cannot be told from others, or only looks."""
    person, visit = _parameters(file)
    if _is_open_link(file):
        person = session.setdefault("link_id", secrets.token_urlsafe(16))
        session.permanent = True
    if not person or MTURK_PREVIEW in (person, visit):
        return None
    return Visitor(file.provider.name, person, device, visit or None)


def _parameters(file: WaveFile) -> tuple[str, str]:
    """The ids of the person and of the visit in the address; empty where there is none that can be one."""
    names = _PARAMETERS.get(file.provider.name, (_link_parameter(file) or "", ""))
    person, visit = (request.args.get(name, "").strip() if name else "" for name in names)
    fits = all(len(each) <= _LONGEST and each.isprintable() for each in (person, visit))
    unfilled = person.startswith("{{") or visit.startswith("{{")  # else all who follow such a link would be one person
    return (person, visit) if fits and not unfilled else ("", "")


def _link_parameter(file: WaveFile) -> str | None:
    link = file.provider.link
    return None if link is None else link.id_parameter


def _is_open_link(file: WaveFile) -> bool:
    """Whether the link is the same for all, and a browser a person."""
    return file.provider.name == LINK and _link_parameter(file) is None


def _device() -> str:
    """The kind of device; a script says more of those that call themselves desktops."""
    found = device_of(request.headers.get("User-Agent", ""))
    if found == DESKTOP and request.form.get("touch") == "yes":
        return TABLET
    return found


def _keep_submit_host() -> None:
    """MTurk says in the link to which of its hosts its form is to be sent in the end; no other one is."""
    if (host := request.args.get("turkSubmitTo", "").rstrip("/")) in MTURK_HOSTS:
        session["mturk_host"] = host


def door_url(study: str, wave: str) -> str:
    """The recruitment link, without the recruiter's parameters."""
    return settings().public_url + url_for("study.door", study=study, wave=wave)
