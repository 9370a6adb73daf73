"""The sender of a request: a private link is looked up once, and the result is passed on to everything that answers."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from flask import redirect, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as AnyResponse

from app.core.extensions import reading
from app.studies.progress import StudyProgress, find_progress, find_progress_by_token, unknown_link
from app.web.form_writes import write
from app.web.language import use_language

T = TypeVar("T")


def for_participant(view: Callable[[Session, StudyProgress], T]) -> Callable[[str], T]:
    """Answer requests for the private link of a person by `view(session, progress)`, in the language of their study.

    Raises NotFound for a link that Parlor did not give out.
    """

    @wraps(view)
    def answer(token: str) -> T:
        with reading() as session:
            progress = find_progress_by_token(session, token)
            use_language(progress.design.language)
            return view(session, progress)

    return answer


def write_progress(session: Session, progress: StudyProgress, work: Callable[[Session, StudyProgress], T]) -> T:
    """What `work` returns, run as `write` does it, with the enrolment locked. After that `progress` is read anew.

    Raises NotFound for a link that has meanwhile been given to another person.
    """
    number, token = progress.enrolment.id, progress.enrolment.token
    session.rollback()  # no connection is held while waiting to write; later requests read anew

    def locked_work(own: Session) -> T:
        locked = find_progress(own, number, lock=True)
        if locked.enrolment.token != token:
            raise unknown_link()
        return work(own, locked)

    return write(locked_work)


def to_page() -> AnyResponse:
    """Redirect to the page that is due."""
    return redirect(url_for("study.page", **(request.view_args or {})), 303)
