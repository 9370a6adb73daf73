"""Guests: whether models may learn from what they write, and its deletion.

The session cookie keeps the guest's code and answer: the home page asks the question until the first match.
"""

from collections.abc import Mapping
from dataclasses import replace

from flask import session
from flask_babel import gettext
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import NotFound, Phrase
from app.core.extensions import db, reading
from app.matches.lobby import GuestMatchRequest, start_guest_match
from app.matches.stored import StoredMatch
from app.models import Participant
from app.studies import consents, withdrawal
from app.studies.forget import delete_unusable_files
from app.web.form_writes import write
from app.web.seats import settings

_CODE, _ANSWER = "guest", "training"  # in the session cookie
ASKED, AGREED = "training_asked", "training_consent"  # the form's fields


def question() -> str:
    """The question that guests are asked, in the page's language."""
    words = gettext(
        "Language models may be trained on what I write in games here. Once trained, a model cannot forget it."
    )
    return str(words)


def code() -> str | None:
    """The code of this browser's guest; None before the first match."""
    found: str | None = session.get(_CODE)
    return found


def answer() -> bool | None:
    """The answer of this browser's guest; None before the question was asked."""
    found: bool | None = session.get(_ANSWER)
    return found


def start(form: Mapping[str, str], wanted: GuestMatchRequest) -> StoredMatch:
    """Start a match for this browser's guest, with the answer in the form or an earlier one."""
    training = form.get(AGREED) == "yes" if form.get(ASKED) else answer()
    code, text, chosen = session.get(_CODE), question(), settings()
    record, code = write(lambda session: start_as(session, chosen, wanted, training, text, code))
    _store_guest_in_session(code, training)
    return record


def start_as(
    database: Session, chosen: Settings, wanted: GuestMatchRequest, training: bool | None, text: str, code: str | None
) -> tuple[StoredMatch, str]:
    """Start a match for the guest with that code, or a new one; returns the match and the guest's code.

    Raises what `start_guest_match` does.
    """
    guest = consents.find_or_add_guest(database, code)
    if training is not None:
        consents.answer_of_guest(database, guest, training, text)
    request = replace(wanted, participant_id=guest.id, training_consent=training)
    return start_guest_match(database, chosen, request), guest.code


def change_answer(training: bool) -> None:
    """Store a different answer of this browser's guest, which also applies to earlier matches."""
    code, text = session.get(_CODE), question()
    if code is not None:
        write(lambda session: _store_consent(session, code, training, text))
        delete_unusable_files(db.engine, settings().home)
    _store_guest_in_session(code, training)


def participant_id() -> int:
    """The participant behind this browser's guest. Raises NotFound before the first match."""
    code = session.get(_CODE)
    with reading() as database:
        guest = None if code is None else consents.find_guest(database, code)
        if guest is None:
            raise NotFound(
                "guest", expected=Phrase("a browser in which a game was begun here"), got=Phrase("another one")
            )
        return guest.id


def forget() -> None:
    """Delete what this browser's guest wrote; the next match belongs to a new guest."""
    if (code := session.get(_CODE)) is not None:
        write(lambda session: _forget(session, code))
        delete_unusable_files(db.engine, settings().home)
    session.pop(_CODE, None)
    session.pop(_ANSWER, None)


def _store_consent(database: Session, code: str, training: bool, text: str) -> None:
    consents.answer_of_guest(database, consents.find_or_add_guest(database, code), training, text)


def _forget(database: Session, code: str) -> None:
    guest: Participant | None = consents.find_guest(database, code)
    if guest is not None:
        withdrawal.delete_data(database, guest)


def _store_guest_in_session(code: str | None, training: bool | None) -> None:
    if code is not None:
        session[_CODE] = code
    if training is not None:
        session[_ANSWER] = training
    session.permanent = True
