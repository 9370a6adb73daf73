"""How people enter a wave: what the study is, for whom, and what it pays. Only the button admits anyone."""

import secrets
from decimal import Decimal

from flask import redirect, render_template, request, session
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.errors import Conflict, NotAllowed, TooMany
from app.core.extensions import reading
from app.models import StudyVersion, Wave
from app.studies import extra_time, previews
from app.studies.access_token import Doubt
from app.studies.devices import DESKTOP, TABLET, device_of, is_served
from app.studies.enrolment import NotTheirs, Visitor, comparable_id, mark_of_link
from app.studies.enrolment import enter as enter_wave
from app.studies.payments import record_owed
from app.studies.progress import unknown_link
from app.studies.store import design_of
from app.studies.wave_file import WaveFile
from app.studies.waves import OPEN
from app.web.extensions import limiter
from app.web.form_writes import write
from app.web.language import use_language
from app.web.limits import give_back_attempt
from app.web.seats import settings
from app.web.study.blueprint import blueprint, private_url
from app.web.study.limits import arrival_limit
from app.web.study.recruitment_link import (
    RequestedWave,
    doubt_of,
    has_token,
    is_of_another_study,
    is_open_link,
    link_ids,
    requested_wave,
)

MARKS = "private links"  # in the cookie: what the browser keeps about the links that it has opened
_MOST_MARKS = 20  # a cookie holds about 4 kB


@blueprint.get("/<study>/<wave>")
def entry(study: str, wave: str) -> str:
    """The advertisement. Merely viewing it, as programs that prefetch links do, leaves nothing behind."""
    return _advertisement(requested_wave(study, wave))


@blueprint.post("/<study>/<wave>")
@limiter.limit(**arrival_limit)
def enter(study: str, wave: str) -> AnyResponse | str | tuple[str, int]:
    """Admit a person, or return them to where they were."""
    found = requested_wave(study, wave)
    file, visitor = found.file, _visitor(found)
    if visitor is None or is_of_another_study(file) or not is_served(found.design, visitor.device):
        return _advertisement(found)
    doubt = doubt_of(file) if file.provider.is_signed else None
    if doubt is not None:  # a visit id that nobody signed proves nothing, and is not kept
        visitor = visitor._replace(submission_id=None, doubted=True)
    elif file.provider.is_signed:
        visitor = visitor._replace(proven=True)
    secret, factor = settings().secret_key, _extra_time(found)

    def enrol(database: Session) -> tuple[str, bool]:
        progress = enter_wave(database, database.get_one(Wave, found.id), visitor, secret)
        is_back = mark_of_link(str(progress.enrolment.token)) in visitor.marks
        if factor is not None and progress.enrolment.ending is None:
            extra_time.give(database, progress, factor)
        record_owed(database, progress)
        return str(progress.enrolment.token), is_back

    try:
        token, is_back = write(enrol)
    except NotTheirs:
        return _not_let_in(found, doubt), 503 if doubt == "unknown" else 403
    except NotAllowed:  # for a new person while paused, closed or frozen: nothing was recorded, and the page says why
        return _advertisement(requested_wave(study, wave, anew=True))
    if is_back:
        give_back_attempt()
    remember(token)
    return redirect(private_url(token), 303)


@blueprint.get("/preview/<signed>")
def preview(signed: str) -> str:
    """The advertisement before a preview of a version, which is in no wave."""
    return _preview(previews.read_preview(settings().secret_key, signed))


@blueprint.post("/preview/<signed>")
def begin_preview(signed: str) -> ResponseReturnValue:
    """Start a preview of a version."""
    found = previews.read_preview(settings().secret_key, signed)
    device = _device()
    with reading() as database:
        over_budget = previews.is_over_budget(database, settings(), found)
    if over_budget:
        return _preview(found), Conflict.status
    try:
        token = write(lambda database: str(previews.enter_preview(database, found, device).enrolment.token))
    except TooMany as error:  # the page says so, and what to do
        return _preview(found), error.status
    return redirect(private_url(token), 303)


def _preview(found: previews.Preview) -> str:
    with reading() as database:
        design = design_of(database.get_one(StudyVersion, found.version_id))
        used_up = previews.is_used_up(database, found)
        over_budget = previews.is_over_budget(database, settings(), found)
    use_language(design.language)
    return render_template(
        "study/entry.html", design=design, preview=True, used_up=used_up, over_budget=over_budget, status=OPEN,
        served=True, known=True,
    )  # fmt: skip


def remember(token: str) -> None:
    """Have the browser remember that it was given a private link, so that it may return through the wave's link."""
    mark = mark_of_link(token)
    kept = [each for each in session.get(MARKS, ()) if each != mark]
    if kept[-1:] != [mark]:
        session[MARKS] = [*kept, mark][-_MOST_MARKS:]
        session.permanent = True


def _not_let_in(found: RequestedWave, doubt: Doubt | None) -> str:
    """The page for a person whose link does not prove who they are. It does not reveal whose id it is."""
    use_language(found.design.language)
    recruiter = found.file.provider.name
    return render_template("study/not-let-in.html", design=found.design, recruiter=recruiter, doubt=doubt)


def _advertisement(found: RequestedWave) -> str:
    design, file = found.design, found.file
    use_language(design.language)
    _extra_time(found)
    return render_template(
        "study/entry.html",
        design=design,
        status=found.status,
        served=is_served(design, _device()),
        known=_is_whole(file),
        other_study=is_of_another_study(file),
        recruiter=file.provider.name,
        gone=file.provider.is_gone,
        address=settings().public_url + request.full_path.rstrip("?"),
    )


def _is_whole(file: WaveFile) -> bool:
    """Whether the link is complete; a browser that has opened a private link may know the person without that."""
    if file.provider.is_signed and not has_token() and not session.get(MARKS):
        return False
    return bool(link_ids(file).person) or is_open_link(file)


def _visitor(found: RequestedWave) -> Visitor | None:
    """The visitor, from the recruiter's parameters; None for one who cannot be told apart from others, or only looks.

    An interrupted bot returns in another browser; its wave contains nothing about people.
    """
    file = found.file
    person, visit, _ = link_ids(file)
    own = is_open_link(file)
    if own:
        person = session.setdefault("link_id", secrets.token_urlsafe(16))
        session.permanent = True
    if not person:
        return None
    marks = frozenset(map(str, session.get(MARKS, ())))
    proven = own or found.of_bots
    return Visitor(file.provider.name, person, _device(), visit or None, proven=proven, marks=marks)


def _extra_time(found: RequestedWave) -> Decimal | None:
    """The extra time of a personal link. Raises NotFound for one that was altered, or belongs to another person."""
    if (token := request.args.get(extra_time.PARAMETER)) is None:
        return None
    link = extra_time.read_token(settings().secret_key, token)
    recruiter, person = found.file.provider.name, link_ids(found.file).person
    theirs = link.person is None or comparable_id(recruiter, link.person) == comparable_id(recruiter, person)
    if link.wave_id != found.id or not theirs:
        raise unknown_link()
    return link.factor


def _device() -> str:
    """The kind of device; a script refines it for those that identify as desktops."""
    found = device_of(request.headers.get("User-Agent", ""))
    if found == DESKTOP and request.form.get("touch") == "yes":
        return TABLET
    return found
