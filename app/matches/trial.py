"""A test call: a language model is asked for the first move of a game that is never played.

It runs in a worker, as turns do, with the worker's keys and the worker's way to the server.
"""

from datetime import UTC, datetime
from typing import cast

from sqlalchemy import update

from app.errors import AppError
from app.extensions import reading, writing
from app.games.base import JSON
from app.matches import engine
from app.matches.events import Violated
from app.matches.turns import Desk
from app.models import LanguageModel
from app.players import make_player
from app.players.base import Generation, Generator, PlayerFailed
from app.players.prompts import default_prompt
from app.registry import player_spec

SEED = 1  # every test call asks for a move in the same game


def try_model(desk: Desk, model_id: int) -> None:
    """Call a model once and store the result on its row; whatever goes wrong is the result, too."""
    with reading(desk.database) as session:
        row = session.get(LanguageModel, model_id)
        if row is None or row.kind == "scripted":
            return
        spec, game, style = player_spec(row), row.games[0], row.prompt_style or "full"
    try:
        match = engine.replay([engine.start(game, {}, SEED)])
        player = cast(Generator, make_player(spec))
        reply = player.reply(match.view(cast(int, match.to_move)), default_prompt(game, style))
        result = _result(match, desk.call(reply).result())
    except PlayerFailed as failure:
        result = {"ok": False, "error": failure.message, "latency": round(failure.generation.latency, 3)}
    except TimeoutError:
        result = {"ok": False, "error": f"no answer within {desk.settings.TURN_SECONDS:g} s"}
    except AppError as refusal:
        result = {"ok": False, "error": refusal.message}
    tested = {"tested_at": datetime.now(UTC), "test_result": {"game": game, **result}}
    with writing(desk.database) as session:
        session.execute(update(LanguageModel).where(LanguageModel.id == model_id).values(**tested))


def _result(match: engine.Match, generation: Generation) -> JSON:
    """What is kept of an answer, and whether the game would have taken it as a move."""
    text = engine.readable(generation.text or "")
    verdict = engine.step(match, cast(int, match.to_move), text)[0]
    return {
        "ok": True,
        "text": text,
        "refused": verdict.reason if isinstance(verdict, Violated) else None,
        "model": generation.model,
        "latency": round(generation.latency, 3),
        "retries": generation.retries,
        "prompt_tokens": generation.prompt_tokens,
        "completion_tokens": generation.completion_tokens,
    }
