"""Start matches of guests: who sits where, what is played, against whom."""

import random
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Invalid, NotAllowed, Phrase, TooMany, either
from app.core.validation import LARGEST_SEED
from app.games import find_game
from app.games.config import LENIENT
from app.jobs.holding import hold
from app.matches import live
from app.matches.clocks import Clocks
from app.matches.material import server_pieces, with_piece
from app.matches.stored import StoredMatch, StoredSeat
from app.models import LanguageModel, MatchRow, SeatRow
from app.players.scripted import SCRIPTED
from app.registry import PERSON, SHIPPED, check_not_archived, find_partner
from app.registry.spending import check_spending

LIVE = "live"


@dataclass(frozen=True, slots=True)
class GuestMatchRequest:
    """A guest's request for a match. `opponent` is a public label and `role` a role of the game; None leaves it open.

    `training_consent` is whether the guest, who is the participant `participant_id`, agreed that models learn from what
    they write; None: was not asked.
    """

    game: str
    config: Mapping[str, Any]
    opponent: str | None = None
    role: str | None = None
    start_key: str | None = None
    held: Collection[str] = ()  # matches in which this person already has a seat
    participant_id: int | None = None
    training_consent: bool | None = None


def start_guest_match(session: Session, settings: Settings, request: GuestMatchRequest) -> StoredMatch:
    """Start the match that a guest asked for.

    Raises NotAllowed when guest play is off, Conflict when too many games of the same person are open, NotFound for an
    unknown game or opponent, Conflict for an opponent that costs money when the shared budget is used up, and Invalid
    for the rest.
    """
    if not settings.GUEST_PLAY:
        raise NotAllowed(Phrase("Games start by invitation here. Please use the link that you were sent."))
    game = find_game(request.game)
    _check_open(session, settings.OPEN_MATCHES, request)
    return _create_guest_match(session, settings, request, _held_partner(session, game.name, request.opponent))


def start_match_against(session: Session, settings: Settings, game: str, opponent: LanguageModel) -> StoredMatch:
    """Start an experimenter's match against a model, which need not be offered to anybody.

    Raises NotFound for an unknown game, Conflict for one that the model does not play and for an archived model.
    """
    hold(session, [opponent])
    check_not_archived(opponent)
    if find_game(game).name not in opponent.games:
        raise Conflict(
            "game",
            expected=Phrase("one that %(name)s plays (%(games)s)", name=opponent.name, games=", ".join(opponent.games)),
            got=game,
        )
    return _create_guest_match(session, settings, GuestMatchRequest(game, {}), opponent)


def _held_partner(session: Session, game: str, label: str | None) -> LanguageModel:
    """The model that `find_partner` finds, protected against removal. Raises NotFound."""
    partner = find_partner(session, game, label)
    try:
        hold(session, [partner])
    except Conflict:  # it names the model, which was just removed, and before that was no longer offered
        session.expire(partner)
        partner = find_partner(session, game, label)
        hold(session, [partner])
    return partner


def _create_guest_match(
    session: Session, settings: Settings, request: GuestMatchRequest, opponent: LanguageModel
) -> StoredMatch:
    check_spending(session, settings, opponent)
    game = find_game(request.game)
    seed = new_seed()
    person = person_seat(game.roles, request.role, seed)
    seats = StoredSeat(PERSON), StoredSeat.of(opponent)
    record = live.create(
        session,
        game.name,
        _draw_config(game.name, request.config, settings, opponent, seed),
        seats if person == 0 else (seats[1], seats[0]),
        seed=seed,
        source=LIVE,
        instant=settings.READING_WORDS_PER_MINUTE == 0,
        start_key=request.start_key,
        clocks=Clocks.of(settings.TURN_CLOCK, settings.MATCH_CLOCK),
    )
    if request.participant_id is not None:
        seat = session.get_one(SeatRow, (record.id, person_in(record)))
        seat.participant_id, seat.training_consent = request.participant_id, request.training_consent
        session.flush()
    return record


def _check_open(session: Session, most: int, request: GuestMatchRequest) -> None:
    """Refuse one game too many, but not the same start sent twice."""
    playing = select(MatchRow.start_key).where(MatchRow.id.in_(request.held), MatchRow.status == "playing")
    keys = session.scalars(playing).all() if most and request.held else []
    if len(keys) >= most > 0 and (request.start_key is None or request.start_key not in keys):
        raise TooMany(
            Phrase("You have reached the limit of open games. Finish or leave one of them first, from the start page.")
        )


def read_seed(text: str, name: str = "seed") -> int:
    """A seed that was typed in. Raises Invalid, under the `name` of the field."""
    if not (text.isascii() and text.isdigit() and int(text) <= LARGEST_SEED):
        raise Invalid(name, expected=Phrase("a whole number from 0 to %(most)s", most=LARGEST_SEED), got=text)
    return int(text)


def new_seed() -> int:
    """A seed of 62 bits, which every database stores as a signed number."""
    return secrets.randbits(62)


def person_seat(roles: tuple[str, str], role: str | None, seed: int) -> int:
    """The seat of a role; drawn from the match's seed when it is left open or both seats have the same role."""
    if role is not None and role not in roles:
        raise Invalid("role", expected=either(dict.fromkeys(roles)), got=role)
    open_seats = [seat for seat in (0, 1) if role is None or roles[seat] == role]
    return random.Random(f"{seed}/person").choice(open_seats)


def person_in(record: StoredMatch) -> int:
    """The seat where the person of a guest match sits."""
    return next(number for number, seat in enumerate(record.seats) if seat.kind == PERSON)


def _draw_config(
    game: str, config: Mapping[str, Any], settings: Settings, opponent: LanguageModel, seed: int
) -> Mapping[str, Any]:
    """The config, with the guests' defaults where it is left open; moves of language models are read leniently.

    Against a scripted partner, the piece of material is one that this partner plays well with. The small models shipped
    with Parlor have learned from such pieces.
    """
    learned = opponent.kind == "scripted" or opponent.name in SHIPPED
    baseline = SCRIPTED.get(game)
    known = baseline.pieces if learned and baseline is not None else None
    config = {**({} if opponent.kind == "scripted" else {LENIENT: True}), **config}
    return with_piece(game, config, known() if known is not None else server_pieces(game, settings), seed)
