"""Making requests: by a worker, which was told of one, or right here, for a command."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import structlog
from sqlalchemy import Engine

from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, insist, reason_of, writing
from app.core.internal_errors import internal_error
from app.games.base import JSON
from app.matches.engine import readable
from app.matches.turns import WorkerContext, answer_within
from app.model_calls import request_lifecycle, test_call
from app.models import LanguageModel, ModelRequest
from app.players import make_player
from app.players.base import ChatPlayer, ChatSampling, Generation, PlayerFailed
from app.registry import player_spec
from app.registry.learnt import write_learnt
from app.registry.spending import spending_limit

log = structlog.get_logger()

_USAGE = (
    "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "cost",
    "cost_source",
)  # fmt: skip

Ask = Callable[[], Coroutine[Any, Any, Generation]]
Call = Callable[[Ask], Generation]  # raises TimeoutError after TURN_SECONDS


def make_request(context: WorkerContext, number: int) -> None:
    """Make a request in a worker, and keep its result, which may be an error.

    Does nothing if the request is made already, or if another worker makes it.
    """
    try:
        _make(context.database, context.settings, number, context.owner, lambda ask: context.call(ask).result())
    except DATABASE_AWAY as error:
        log.warning("the database took no request, upkeep asks again", request=number, error=reason_of(error))


def make_here(database: Engine, settings: Settings, number: int) -> JSON:
    """Make a request that was created for this process, with its keys: `ok`, and the answer or the `error`.

    An interrupt fails the request, so that no worker makes it once more.
    """
    owner = uuid.uuid4().hex

    def call(ask: Ask) -> Generation:
        return asyncio.run(answer_within(settings.TURN_SECONDS, ask))

    try:
        result = _make(database, settings, number, owner, call)
    except KeyboardInterrupt:
        with writing(database) as session:
            request_lifecycle.finish(session, number, owner, {"ok": False, "error": "interrupted"}, None)
        raise
    return result or {"ok": False, "error": "somebody else makes this request"}


def _make(database: Engine, settings: Settings, number: int, owner: str, call: Call) -> JSON | None:
    with writing(database) as session:
        request = request_lifecycle.take(session, number, owner, settings.TURN_SECONDS)
        if request is None:
            return None
        model = session.get_one(LanguageModel, request.language_model_id)
        limit = spending_limit(session, settings) if model.kind == "api" else None
        reply = _reply(model, request, settings.home)
        game = request.game
    result: JSON = {"ok": False, "error": limit}
    generation = None
    if limit is None:
        result, generation = _call_result(lambda: call(reply), settings.TURN_SECONDS)
    if game is not None:
        refused = {"refused": test_call.verdict(game, result["text"])} if result["ok"] else {}
        result = {"game": game, **result, **refused}
    write_learnt(database)
    # The answer has cost time and money: it waits for a database that is away or has no room.
    insist(
        database,
        lambda session: request_lifecycle.finish(session, number, owner, result, generation),
        settings.TURN_SECONDS,
    )
    return result


def _reply(row: LanguageModel, request: ModelRequest, home: Path) -> Ask:
    """How the model is asked. The coroutine raises Invalid for a model that cannot be called."""
    spec, messages, sampling = player_spec(row), request.messages, ChatSampling(**request.sampling)
    seed = str(test_call.SEED) if request.purpose == request_lifecycle.TEST else f"request {request.id}"

    def reply() -> Coroutine[Any, Any, Generation]:
        player = cast(ChatPlayer, make_player(spec, home))
        return player.complete(messages, sampling, seed=seed)

    return reply


def _call_result(call: Callable[[], Generation], seconds: float) -> tuple[JSON, Generation | None]:
    """The result of a call, for the request's row, and the call itself; `seconds` is how long it may take."""
    try:
        generation = call()
    except PlayerFailed as failure:
        latency = round(failure.generation.latency, 3)
        why = {"error": failure.message, "kind": failure.kind}
        return {"ok": False, **why, "latency": latency, **_usage(failure.generation)}, failure.generation
    except TimeoutError:
        return {"ok": False, "error": f"no answer within {seconds:g} s"}, None
    except AppError as refusal:
        return {"ok": False, "error": refusal.message}, None
    except Exception as error:  # the model's server or engine broke in a way that nobody has foreseen
        return {"ok": False, "error": internal_error("a request to a model broke", error)}, None
    result = {
        "ok": True,
        "text": readable(generation.text or ""),
        "model": generation.model,
        "latency": round(generation.latency, 3),
        "retries": generation.retries,
        **_usage(generation),
    }
    return result, generation


def _usage(generation: Generation) -> JSON:
    return {name: getattr(generation, name) for name in _USAGE}
