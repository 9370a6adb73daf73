"""What a seat is told about its partner: always for guests, for people in a study only if its design says so."""

from pathlib import Path

from app.matches.stored import StoredMatch
from app.players.description import COMPUTER, partner_kind


def told_of_partner(record: StoredMatch, seat: int, home: Path) -> str | None:
    """The kind of the partner of a seat, or None if nothing is said. `home` is PARLOR_HOME.

    In a study all models are computer programs: their kinds would reveal the conditions.
    """
    if record.options is not None:
        return COMPUTER if record.options.tells_partner else None
    return partner_kind(record.seats[1 - seat].spec, home)
