"""What a seat is shown of its partner: guests always, people in a study where its design says so."""

from pathlib import Path

from app.matches.stored import StoredMatch
from app.players.description import COMPUTER, partner_kind


def told_of_partner(record: StoredMatch, seat: int, home: Path) -> str | None:
    """The kind of the partner of a seat, or None where nothing is said. `home` is PARLOR_HOME.

    In a study all models are computer programs: their kinds would tell conditions apart.
    """
    if record.options is not None:
        return COMPUTER if record.options.tells_partner else None
    return partner_kind(record.seats[1 - seat].spec, home)
