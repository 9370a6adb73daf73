"""The way back from a survey elsewhere: a code for one use at one step, which leads to nothing of the person.

Whoever runs that survey has the code. It says that somebody came back, once they press a button: a program that only
looks at the link changes nothing. It never leads to the private link but in a browser that has had it.
"""

from typing import NamedTuple

from flask import redirect, render_template, session, url_for
from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.errors import NotFound, Phrase
from app.extensions import reading
from app.studies import answers
from app.studies.entry import mark_of_link
from app.studies.progress import Way, find_way
from app.web.form_writes import write
from app.web.language import use_language
from app.web.seats import settings
from app.web.study.blueprint import blueprint, way_url
from app.web.study.door import MARKS

_SALT = "parlor.outside-survey"


class _Return(NamedTuple):
    """Where a code belongs: an enrolment, the place of a step on its way, and a question there."""

    enrolment_id: int
    step: int
    question: str


def return_url(way: Way, question: str) -> str:
    """Where a survey elsewhere, which the step that is due asks for, sends people back to."""
    code = _signer().dumps([way.enrolment.id, way.enrolment.step, question])
    return settings().public_url + url_for("study.back", code=code)


@blueprint.get("/me/back/<code>")
def back(code: str) -> str:
    """Ask whether the other survey is done; a code that was used says so."""
    found = _read(code)
    with reading() as database:
        way = find_way(database, found.enrolment_id)
        return _page(way, used=not _is_due(way, found))


@blueprint.post("/me/back/<code>")
def come_back(code: str) -> AnyResponse | str:
    """Keep that somebody came back, once; in the browser of the person, go on."""
    found = _read(code)

    def keep(database: Session) -> bool:
        way = find_way(database, found.enrolment_id, lock=True)
        is_new = _is_due(way, found)
        if is_new:
            answers.come_back(database, way, way.step.key, found.question)
        return is_new

    is_new = write(keep)
    with reading() as database:
        way = find_way(database, found.enrolment_id)
        if is_new and _is_known_here(way):
            return redirect(way_url(str(way.enrolment.token)), 303)
        return _page(way, used=not is_new, kept=is_new)


def _read(code: str) -> _Return:
    """Whose code it is. Raises NotFound for one that Parlor did not give out."""
    try:
        return _Return(*_signer().loads(code))
    except (BadSignature, ValueError, TypeError):
        raise NotFound("link", expected=Phrase("one that Parlor gave out"), got=Phrase("another one")) from None


def _is_due(way: Way, found: _Return) -> bool:
    """Whether a code is for the step that the person is at, and was not used."""
    return way.enrolment.step == found.step and found.question not in answers.returned(way)


def _is_known_here(way: Way) -> bool:
    return mark_of_link(str(way.enrolment.token)) in session.get(MARKS, ())


def _page(way: Way, *, used: bool, kept: bool = False) -> str:
    use_language(way.design.language)
    link = way_url(str(way.enrolment.token)) if _is_known_here(way) else None
    return render_template("study/back.html", design=way.design, used=used, kept=kept, link=link)


def _signer() -> URLSafeSerializer:
    return URLSafeSerializer(settings().secret_key, salt=_SALT)
