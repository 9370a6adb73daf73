"""Test calls: a language model is asked for the first move of a game that is never played; a model behind an API gets a
few more calls that find out how it wants to be called. And checks of whether a model's temperature has an effect.
"""

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase, shown
from app.games import find_game
from app.jobs.call_costs import TokenCounts, cost_of
from app.jobs.spending import dollars
from app.matches import engine
from app.matches.events import Violated
from app.model_calls import request_lifecycle
from app.models import LanguageModel, ModelRequest
from app.players import prompts
from app.players.api.options import read_options
from app.players.api.server_findings import DRAWS
from app.players.base import ChatSampling
from app.registry.prices import prices_of_model

SEED = 1  # every test call asks for a move in the same game
_DRAWN_TOKENS = 40
_DRAWN = "Make up a sentence of about twelve words about the sea. Answer with the sentence alone."
_DRAWN_PROMPT = 40  # tokens, roughly


def request_test(session: Session, row: LanguageModel) -> ModelRequest:
    """Request a test call of a model, in the first of its games and its own style.

    Raises Conflict for a scripted model, and for one that plays no game.
    """
    if not row.games:
        raise Conflict(
            "model",
            expected=Phrase("one that plays a game"),
            got=Phrase("%(name)s, which answers chats alone", name=shown(row.name)),
            remedy=Phrase("`flask model ask %(name)s` asks it", name=row.name),
        )
    game = row.games[0]
    request = request_lifecycle.create(session, row, request_lifecycle.TEST, opening(row), sampling_of(row), game)
    row.test_request_id = request.id
    return request


def request_check(session: Session, row: LanguageModel) -> ModelRequest:
    """Request a check of a model's sampling, by DRAWS draws at each of two temperatures.

    Raises Conflict for a model that is not behind an API.
    """
    if row.kind != "api":
        raise Conflict(
            "model",
            expected=Phrase("one behind an API"),
            got=Phrase("%(name)s, which is not", name=shown(row.name)),
        )
    chat = [{"role": "user", "content": _DRAWN}]
    sampling = ChatSampling(max_tokens=_DRAWN_TOKENS)
    return request_lifecycle.create(session, row, request_lifecycle.CHECK, chat, sampling)


def latest_check(session: Session, row: LanguageModel) -> ModelRequest | None:
    """The last requested check of a model's sampling."""
    found = select(ModelRequest).where(
        ModelRequest.language_model_id == row.id, ModelRequest.purpose == request_lifecycle.CHECK
    )
    return session.scalar(found.order_by(ModelRequest.id.desc()).limit(1))


def check_costs(row: LanguageModel) -> Phrase:
    """The maximum cost of a check of a model's sampling, to show before it is made."""
    most = _DRAWN_TOKENS + read_options(row.options).reasoning_room
    prices, calls = prices_of_model(row), 2 * DRAWS
    if prices is None:
        return Phrase(
            "%(calls)s calls of at most %(tokens)s tokens each; the model has no prices", calls=calls, tokens=most
        )
    usd = cost_of(prices, TokenCounts(_DRAWN_PROMPT, most, reasoning=most - _DRAWN_TOKENS).times(calls))
    return Phrase(
        "%(calls)s calls of at most %(tokens)s tokens each, %(usd)s at most", calls=calls, tokens=most, usd=dollars(usd)
    )


def opening(row: LanguageModel) -> list[prompts.Message]:
    """The chat that a test call sends."""
    match = _opening_match(row.games[0])
    prompt = prompts.default_prompt(row.games[0], row.prompt_style or prompts.USUAL_STYLE)
    return prompts.messages(match.view(cast(int, match.to_move)), prompt)


def sampling_of(row: LanguageModel) -> ChatSampling:
    """The sampling of a test call, the same as for a move of its game."""
    return ChatSampling(max_tokens=row.options.get("max_tokens") or find_game(row.games[0]).most_tokens)


def verdict(game: str, text: str) -> str | None:
    """Why the game refuses the answer as its first move; None for a legal one."""
    match = _opening_match(game)
    judged = engine.step(match, cast(int, match.to_move), text)[0]
    return judged.reason if isinstance(judged, Violated) else None


def _opening_match(game: str) -> engine.Match:
    return engine.replay([engine.start(game, {}, SEED)])
