"""What negotiators say and demand, as it is measured: their words, and the offers among them. Pure."""

from collections.abc import Sequence

from app.games.base import Event
from app.games.metrics import MOVES, POINTS, SHARE
from app.games.negotiation.contexts import Context, Counts, three
from app.games.negotiation.offers import OfferHistory
from app.games.negotiation.understanding import read
from app.games.talk import MESSAGES, LanguageMetric, MatchPart, Talk, words_of

_MESSAGE, _PROPOSAL = "message", "proposal"


def talk_of(context: Context, moves: Sequence[Event], seat: int) -> Talk:
    """What a seat said, and what it demanded in its own points: in each message that names a split, then in its
    proposal, if it made one.

    Messages are read as the scripted negotiator reads them; gaps are filled from what was said before.
    """
    history, offers, messages, offering = OfferHistory(context.counts), [], [], 0
    values = context.values[seat]
    for move in moves:
        if move.kind == _PROPOSAL and move.seat == seat:
            offers.append(_worth_of_share(three(move.data["allocation"]), values))
        if move.kind != _MESSAGE:
            continue
        text = move.text.partition("]")[2]
        history.add_message("you" if move.seat == seat else "partner", text)
        if move.seat != seat:
            continue
        messages.append(words_of(text))
        if read(text, context.counts).names_a_split and history.mine is not None:
            offers.append(_worth_of_share(history.mine, values))
            offering += 1
    return Talk(messages, offering, offers)


def _worth_of_share(share: Counts, values: Counts) -> float:
    return float(sum(number * value for number, value in zip(share, values, strict=True)))


def _first_offer(talk: Talk) -> MatchPart:
    return MatchPart(talk.offers[0], 1) if talk.offers else MatchPart(0, 0)


def _concession(talk: Talk) -> MatchPart:
    return MatchPart(talk.offers[0] - talk.offers[-1], 1) if len(talk.offers) > 1 else MatchPart(0, 0)


LANGUAGE = (
    *MESSAGES,
    LanguageMetric(
        "offer_message_rate", "messages with an offer", SHARE,
        "of its messages, those that name a split, as the scripted negotiator reads them",
        lambda talk: MatchPart(talk.offering, len(talk.messages)),
    ),
    LanguageMetric(
        "offers_mean", "offers in a match", MOVES, "splits that it names in messages, and its proposal",
        lambda talk: MatchPart(len(talk.offers), 1),
    ),
    LanguageMetric(
        "first_offer_mean", "demanded by the first offer", POINTS,
        "what the first split that it names is worth to itself, of 10 points, over matches in which it names one",
        _first_offer,
    ),
    LanguageMetric(
        "concession_mean", "conceded from the first offer to the last", POINTS,
        "what its first offer is worth to itself minus what its last one is, over matches with two offers of it",
        _concession,
    ),
)  # fmt: skip
