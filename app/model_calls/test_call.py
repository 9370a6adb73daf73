"""A test call: a language model is asked for the first move of a game that is never played."""

from typing import cast

from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase, shown
from app.games import find_game
from app.matches import engine
from app.matches.events import Violated
from app.model_calls import request_lifecycle
from app.models import LanguageModel, ModelRequest
from app.players import prompts
from app.players.base import ChatSampling

SEED = 1  # every test call asks for a move in the same game


def request_test(session: Session, row: LanguageModel) -> ModelRequest:
    """A test call of a model, in the first of its games and its own style.

    Raises Conflict for a scripted one, and for one that plays no game.
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


def opening(row: LanguageModel) -> list[prompts.Message]:
    """The chat that a test call sends."""
    match = _opening_match(row.games[0])
    prompt = prompts.default_prompt(row.games[0], row.prompt_style or prompts.USUAL_STYLE)
    return prompts.messages(match.view(cast(int, match.to_move)), prompt)


def sampling_of(row: LanguageModel) -> ChatSampling:
    """As a move of that game is sampled."""
    return ChatSampling(max_tokens=row.options.get("max_tokens") or find_game(row.games[0]).most_tokens)


def verdict(game: str, text: str) -> str | None:
    """Why the game refuses the answer as its first move; None for a legal one."""
    match = _opening_match(game)
    judged = engine.step(match, cast(int, match.to_move), text)[0]
    return judged.reason if isinstance(judged, Violated) else None


def _opening_match(game: str) -> engine.Match:
    return engine.replay([engine.start(game, {}, SEED)])
