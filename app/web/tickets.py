"""Tickets: a signed pass to one seat of one match."""

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from app.core.config import Settings
from app.core.errors import NotAllowed, Phrase


def _signer(settings: Settings) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(settings.secret_key, salt="parlor.seat")


def issue(settings: Settings, match_id: str, seat: int) -> str:
    """A ticket, good for TICKET_HOURS."""
    return _signer(settings).dumps([match_id, seat])


def check(settings: Settings, ticket: object, match_id: str) -> int:
    """The seat that the ticket is for. Raises NotAllowed if it is forged, expired, or for another match."""
    if not isinstance(ticket, str):
        raise NotAllowed(Phrase("ticket: expected the text that came with the match, got none; open the game again"))
    try:
        ticket_match, seat = _signer(settings).loads(ticket, max_age=int(settings.TICKET_HOURS * 3600))
    except SignatureExpired:
        raise NotAllowed(
            Phrase(
                "ticket: expected one of the last %(hours)s hours, got an older one; open the game again",
                hours=f"{settings.TICKET_HOURS:g}",
            ),
            code="expired_ticket",
        ) from None
    except (BadSignature, UnicodeError):  # half a character has no bytes to sign
        raise NotAllowed(
            Phrase("ticket: expected one that this server signed, got another; open the game again")
        ) from None
    if ticket_match != match_id:
        raise NotAllowed(Phrase("ticket: expected one for this match, got one for another; open the game again"))
    return int(seat)
