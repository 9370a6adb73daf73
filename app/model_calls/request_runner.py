"""Make requests: in a worker that was sent one, or in this process, for a command."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import structlog
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reason_of, transact_with_retry, writing
from app.core.internal_errors import internal_error
from app.games.base import JSON
from app.matches.engine import readable
from app.matches.turns import WorkerContext, answer_within
from app.model_calls import request_lifecycle, test_call
from app.models import LanguageModel, ModelRequest
from app.players import make_player
from app.players.api.player import ApiPlayer
from app.players.api.probing import ServerTest
from app.players.api.sampling_test import SamplingTest
from app.players.api.server_findings import PROBE_SECONDS, SamplingCheck, ServerFindings
from app.players.base import ChatPlayer, ChatSampling, Generation, PlayerFailed, PlayerSpec
from app.registry import player_spec
from app.registry.learnt import keep_check, keep_findings, write_learnt
from app.registry.spending import spending_limit

log = structlog.get_logger()

_USAGE = (
    "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
    "estimated_tokens", "cost", "cost_source",
)  # fmt: skip

Ask = Callable[[], Coroutine[Any, Any, Generation]]
Call = Callable[[Ask, float], Generation]  # raises TimeoutError after that many seconds


def make_request(context: WorkerContext, number: int) -> None:
    """Make a request in a worker, and store its result, which may be an error.

    Does nothing if the request is already made, or if another worker is making it.
    """

    def call(ask: Ask, seconds: float) -> Generation:
        return context.call(ask, seconds).result()

    try:
        _make(context.database, context.settings, number, context.owner, call)
    except DATABASE_AWAY as error:
        log.warning("the database took no request, upkeep asks again", request=number, error=reason_of(error))


def make_here(database: Engine, settings: Settings, number: int) -> JSON:
    """Make a request that was created for this process, with this process's keys: `ok`, and the answer or the `error`.

    An interrupt fails the request, so that no worker makes it again.
    """
    owner = uuid.uuid4().hex

    def call(ask: Ask, seconds: float) -> Generation:
        return asyncio.run(answer_within(seconds, ask))

    try:
        result = _make(database, settings, number, owner, call)
    except KeyboardInterrupt:
        with writing(database) as session:
            request_lifecycle.finish(session, number, owner, {"ok": False, "error": "interrupted"}, ())
        raise
    return result or {"ok": False, "error": "somebody else makes this request"}


def _make(database: Engine, settings: Settings, number: int, owner: str, call: Call) -> JSON | None:
    with writing(database) as session:
        request = request_lifecycle.take(session, number, owner, settings.TURN_SECONDS)
        if request is None:
            return None
        model = session.get_one(LanguageModel, request.language_model_id)
        limit = spending_limit(session, settings) if model.kind == "api" else None
        several = model.kind == "api" and request.purpose in request_lifecycle.LONG_PURPOSES
        asking = _Asking(player_spec(model), request, settings)
        game, model_id = request.game, model.id
    result: JSON = {"ok": False, "error": limit}
    calls: Sequence[Generation] = ()
    if limit is None:
        seconds = settings.TURN_SECONDS + (PROBE_SECONDS if several else 0)
        result, generation = _call_result(lambda: call(asking.begin, seconds), settings.TURN_SECONDS)
        calls = asking.calls or ([] if generation is None else [generation])
    if game is not None:
        refused = {"refused": test_call.verdict(game, result["text"])} if result["ok"] else {}
        result = {"game": game, **result, **refused}
    result |= _findings_as_json(asking.found)
    write_learnt(database)

    def keep(session: Session) -> None:
        if request_lifecycle.finish(session, number, owner, result, calls) and asking.found is not None:
            # Calls that are being stored hold a lock on the row's key, so the key is not locked here.
            model = session.get_one(LanguageModel, model_id, with_for_update={"key_share": True})
            _keep_found(session, model, asking.found)

    # The answer has cost time and money, so it waits for a database that is away or full.
    transact_with_retry(database, keep, settings.TURN_SECONDS)
    return result


class _Asking:
    """How a request's model is called: once, or by a test of several `calls`, whose findings are in `found`."""

    def __init__(self, spec: PlayerSpec, request: ModelRequest, settings: Settings) -> None:
        self._spec = spec
        self._messages = request.messages
        self._sampling = ChatSampling(**request.sampling)
        self._purpose = request.purpose
        self._seed = str(test_call.SEED) if request.purpose == request_lifecycle.TEST else f"request {request.id}"
        self._settings = settings
        self._test: ServerTest | SamplingTest | None = None

    def begin(self) -> Coroutine[Any, Any, Generation]:
        """The call or calls; the last of them is awaited. Raises Invalid for a model that cannot be called."""
        player = cast(ChatPlayer, make_player(self._spec, self._settings.home))
        if isinstance(player, ApiPlayer) and self._purpose == request_lifecycle.TEST:
            self._test = ServerTest(player)
        elif isinstance(player, ApiPlayer) and self._purpose == request_lifecycle.CHECK:
            self._test = SamplingTest(player)
        if self._test is None:
            return player.complete(self._messages, self._sampling, seed=self._seed)
        return self._test.run(self._messages, self._sampling, self._settings.TURN_SECONDS)

    @property
    def calls(self) -> Sequence[Generation]:
        return [] if self._test is None else self._test.calls

    @property
    def found(self) -> ServerFindings | SamplingCheck | None:
        return None if self._test is None else self._test.found


def _findings_as_json(found: ServerFindings | SamplingCheck | None) -> JSON:
    """A test's findings, as part of its request's result."""
    if found is None:
        return {}
    return {"findings" if isinstance(found, ServerFindings) else "check": found.model_dump(mode="json")}


def _keep_found(session: Session, row: LanguageModel, found: ServerFindings | SamplingCheck) -> None:
    if isinstance(found, ServerFindings):
        keep_findings(session, row, found)
    else:
        keep_check(session, row, found)


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
    except Exception as error:  # an unforeseen failure of the model's server or engine
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
