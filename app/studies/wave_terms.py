"""Changes to an open wave: its places, its spend cap, and its closing time. Nothing here commits."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.models import Wave
from app.studies.assignment_list import list_of
from app.studies.design import expected_form
from app.studies.places import committed, places_taken
from app.studies.progress import by_whom, lock_wave, log_wave_event
from app.studies.store import design_of_wave
from app.studies.wave_file import WaveFile, most_with_fee, stored_wave_file
from app.studies.waves import CLOSED, check_closing_time, check_not_frozen, close, settings_of

CHANGED = "changed"
PLACES, CAP, CLOSES = "places", "most_spent", "closes"
TERMS = (PLACES, CAP, CLOSES)


def change_terms(session: Session, wave: Wave, terms: Mapping[str, Any], by: str | None = None) -> None:
    """Change some of TERMS, written as in a wave's file; `closes` may be None. The changes are logged, with their
    author.

    Raises Invalid for invalid terms and for less than is already taken, and Conflict for a closed wave.
    """
    wave = lock_wave(session, wave.id)
    check_not_frozen(wave)
    if wave.status == CLOSED:
        raise Conflict("wave", expected=Phrase("one that is not closed"), got=Phrase("a closed one"), subject=wave.name)
    before, after = settings_of(wave), _wave_file_with_terms(wave, terms)
    _check_places(session, wave, before, after)
    _check_cap(session, wave, before, after)
    if after.closes != before.closes:
        check_closing_time(after)
    changed = {
        name: [_term_json(before, name), _term_json(after, name)]
        for name in TERMS
        if getattr(before, name) != getattr(after, name)
    }
    if not changed:
        return
    wave.settings = after.model_dump(mode="json", exclude_unset=True)
    log_wave_event(session, wave.id, CHANGED, changed | by_whom(by))
    session.flush()


def due_to_close(session: Session) -> Sequence[int]:
    """The waves whose time to close has come. Only reads."""
    timed = select(Wave).where(Wave.status != CLOSED, Wave.settings[CLOSES].as_string().is_not(None))
    return [wave.id for wave in session.scalars(timed.order_by(Wave.id)) if _is_due(wave)]


def close_at_its_time(session: Session, wave_id: int) -> str | None:
    """Close a wave whose time has come; its name, or None if it was closed or postponed meanwhile."""
    wave = lock_wave(session, wave_id)
    if wave.status == CLOSED or not _is_due(wave):
        return None
    close(session, wave, "its closing time")
    return wave.name


def _is_due(wave: Wave) -> bool:
    at = settings_of(wave).closes_at
    return at is not None and at <= datetime.now(UTC)


def _wave_file_with_terms(wave: Wave, terms: Mapping[str, Any]) -> WaveFile:
    written = {**wave.settings, **{name: value for name, value in terms.items() if name in TERMS}}
    if written.get(CLOSES) is None:
        written.pop(CLOSES, None)
    try:
        return stored_wave_file(written)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0] if first["loc"] else first["type"])
        raise Invalid(field, expected=expected_form(first), got=str(terms.get(field, ""))) from None


def _check_places(session: Session, wave: Wave, before: WaveFile, after: WaveFile) -> None:
    taken, listed = places_taken(session, wave), list_of(session, wave.id)
    if after.places < before.places and after.places < taken:
        raise Invalid(PLACES, expected=Phrase("at least the %(taken)s that are taken", taken=taken), got=after.places)
    if listed is not None and after.places > len(listed.arms):
        expected = Phrase("at most the %(lines)s lines of the list that arms follow", lines=len(listed.arms))
        raise Invalid(PLACES, expected=expected, got=after.places)


def _check_cap(session: Session, wave: Wave, before: WaveFile, after: WaveFile) -> None:
    if after.most_spent >= before.most_spent:
        return
    design = design_of_wave(session, wave)
    least = max(committed(session, wave), most_with_fee(design, after)).quantize(Decimal("0.01"))
    if after.most_spent < least:
        expected = Phrase(
            "at least %(amount)s, to cover what is owed and reserved and what one person may cost", amount=least
        )
        raise Invalid(CAP, expected=expected, got=Verbatim(str(after.most_spent)))


def _term_json(file: WaveFile, name: str) -> Any:
    value = getattr(file, name)
    return str(value) if isinstance(value, Decimal) else value
