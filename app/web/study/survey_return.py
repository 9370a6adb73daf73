"""The return from an external survey: a single-use code for one step, which gives no access to the person.

The people who run that survey have the code. It records that a person came back, once they press a button: a program
that only opens the link changes nothing. It leads to the private link only in a browser that has had it. A code does
not reveal whose it is, or for which step.
"""

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from flask import redirect, render_template, url_for
from flask import session as cookie
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.extensions import reading
from app.studies import answers
from app.studies.enrolment import mark_of_link
from app.studies.progress import StudyProgress, find_progress, unknown_link
from app.web.language import use_language
from app.web.seats import settings
from app.web.study.blueprint import blueprint, private_url
from app.web.study.entry import MARKS
from app.web.study.participant import write_progress

_KEY = b"parlor.outside-survey"
_TAG = 16  # bytes of a code that authenticate the rest
_BLOCK = 64  # bytes by which the rest grows, so that its length reveals nothing


class _Return(NamedTuple):
    """What a code stands for: an enrolment, the position of a step in it, and a question there."""

    enrolment_id: int
    step: int
    question: str


def return_url(progress: StudyProgress, question: str) -> str:
    """The URL to which an external survey, required by the due step, sends people back."""
    code = _sealed(_Return(progress.enrolment.id, progress.enrolment.step, question))
    return settings().public_url + url_for("study.back", code=code)


@blueprint.get("/me/back/<code>")
def back(code: str) -> str:
    """Ask whether the other survey is done; for a used code, say so."""
    found = _unsealed(code)
    with reading() as session:
        progress = find_progress(session, found.enrolment_id)
        return _return_page(progress, used=not _is_due(progress, found))


@blueprint.post("/me/back/<code>")
def come_back(code: str) -> AnyResponse | str:
    """Record once that a person came back; in their own browser, continue."""
    found = _unsealed(code)

    def keep(own: Session, progress: StudyProgress) -> bool:
        is_new = _is_due(progress, found)
        if is_new:
            answers.come_back(own, progress, progress.step.key, found.question)
        return is_new

    with reading() as session:
        progress = find_progress(session, found.enrolment_id)
        is_new = write_progress(session, progress, keep)
        if is_new and _is_known_here(progress):
            return redirect(private_url(str(progress.enrolment.token)), 303)
        return _return_page(progress, used=not is_new, kept=is_new)


def _unsealed(code: str) -> _Return:
    """What a code stands for. Raises NotFound for one that Parlor did not issue."""
    try:
        sealed = urlsafe_b64decode(code + "=" * (-len(code) % 4))
    except ValueError:
        sealed = b""
    tag, plain = sealed[:_TAG], _masked(sealed[:_TAG], sealed[_TAG:])
    if not hmac.compare_digest(tag, _tag(plain)):
        raise unknown_link()
    return _Return(*json.loads(plain))


def _sealed(found: _Return) -> str:
    """A code that nobody else can make or read: a keyed hash of its content, and the content under a mask from the
    hash.

    It is the same each time, so that a page may be reopened (a synthetic initialization vector, RFC 5297).
    """
    plain = json.dumps(found).encode()
    plain += b" " * (-len(plain) % _BLOCK)
    return urlsafe_b64encode(_tag(plain) + _masked(_tag(plain), plain)).decode().rstrip("=")


def _tag(plain: bytes) -> bytes:
    return hmac.digest(_derived_key(b"tag"), plain, hashlib.sha256)[:_TAG]


def _masked(tag: bytes, text: bytes) -> bytes:
    """A text hidden by a mask that only the server can make from the tag, or the hidden text revealed."""
    mask = hashlib.shake_256(_derived_key(b"mask") + tag).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, mask, strict=True))


def _derived_key(use: bytes) -> bytes:
    return hmac.digest(settings().secret_key.encode(), _KEY + b"\n" + use, hashlib.sha256)


def _is_due(progress: StudyProgress, found: _Return) -> bool:
    """Whether a code is for the person's current step, and unused."""
    return progress.enrolment.step == found.step and found.question not in answers.returned(progress)


def _is_known_here(progress: StudyProgress) -> bool:
    return mark_of_link(str(progress.enrolment.token)) in cookie.get(MARKS, ())


def _return_page(progress: StudyProgress, *, used: bool, kept: bool = False) -> str:
    use_language(progress.design.language)
    link = private_url(str(progress.enrolment.token)) if _is_known_here(progress) else None
    return render_template("study/survey-return.html", design=progress.design, used=used, kept=kept, link=link)
