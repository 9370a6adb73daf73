"""A test call: a language model is asked for the first move of a game that is never played.

It runs in a worker, as turns do, with the worker's keys and the worker's way to the server. Like a turn it is a row
that waits, and whoever makes it holds a lease: a message that comes twice calls once, and a lost one is sent again.
"""

from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.errors import AppError
from app.extensions import reading, writing
from app.games.base import JSON
from app.matches import engine
from app.matches.events import Violated
from app.matches.sweep import PATIENCE, take_or_renew_lease
from app.matches.turns import WorkerContext
from app.models import LanguageModel, Lease
from app.players import make_player
from app.players.base import Generation, ModelPlayer, PlayerFailed, PlayerSpec
from app.players.prompts import USUAL_STYLE, default_prompt
from app.registry import player_spec

SEED = 1  # every test call asks for a move in the same game
LONGEST = timedelta(minutes=10)  # a test call that nobody has made by then is asked for anew by whoever still wants it


# ---- Waiting -----------------------------------------------------------------


def waits_for_test(row: LanguageModel) -> bool:
    """Whether a test call was asked for that no worker has made yet."""
    return row.test_asked_at is not None and (row.tested_at is None or row.tested_at < row.test_asked_at)


def forgotten_tests(session: Session) -> Sequence[int]:
    """Ids of models whose test call should be rung for again: asked for a while ago, and made by nobody just now."""
    now = datetime.now(UTC)
    asked = LanguageModel.test_asked_at
    waits: ColumnElement[bool] = or_(LanguageModel.tested_at.is_(None), LanguageModel.tested_at < asked)
    lately = and_(asked > now - LONGEST, asked < now - PATIENCE)
    ids = session.scalars(select(LanguageModel.id).where(waits, lately)).all()
    leases = {_lease_of(model_id) for model_id in ids}
    held = set(session.scalars(select(Lease.name).where(Lease.name.in_(leases), Lease.until > now)))
    return [model_id for model_id in ids if _lease_of(model_id) not in held]


def _lease_of(model_id: int) -> str:
    return f"test call of model {model_id}"


class TestCall(NamedTuple):
    """What a model is asked in a test call."""

    spec: PlayerSpec
    prompt: JSON
    match: engine.Match

    @classmethod
    def of(cls, row: LanguageModel) -> "TestCall":
        """The first of the model's games, told in its own style."""
        game = row.games[0]
        prompt = default_prompt(game, row.prompt_style or USUAL_STYLE)
        return cls(player_spec(row), prompt, engine.replay([engine.start(game, {}, SEED)]))

    @property
    def game(self) -> str:
        return self.match.game.name

    def reply(self, home: Path) -> Coroutine[Any, Any, Generation]:
        """The call, to be awaited; `home` is PARLOR_HOME. Raises Invalid for a model that cannot be called."""
        player = cast(ModelPlayer, make_player(self.spec, home))
        return player.reply(self.match.view(cast(int, self.match.to_move)), self.prompt, seed=str(SEED))

    def result(self, call: Callable[[], Generation], seconds: float) -> JSON:
        """What came of the test call that `call` makes, for the model's row; `seconds` is how long it may take."""
        found: JSON
        try:
            found = _result(self.match, call())
        except PlayerFailed as failure:
            found = {"ok": False, "error": failure.message, "latency": round(failure.generation.latency, 3)}
        except TimeoutError:
            found = {"ok": False, "error": f"no answer within {seconds:g} s"}
        except AppError as refusal:
            found = {"ok": False, "error": refusal.message}
        return {"game": self.game, **found}


# ---- The call ----------------------------------------------------------------


def make_test_call(desk: WorkerContext, model_id: int) -> None:
    """Make the test call of a model and store the result on its row; whatever goes wrong is the result, too.

    Does nothing if no test call waits, or if another worker makes it.
    """
    if not _take_lease(desk, model_id):
        return
    with reading(desk.database) as session:
        trial = TestCall.of(session.get_one(LanguageModel, model_id))
    home, seconds = desk.settings.home, desk.settings.TURN_SECONDS
    result = trial.result(lambda: desk.call(trial.reply(home)).result(), seconds)
    now = datetime.now(UTC)
    with writing(desk.database) as session:
        if take_or_renew_lease(session, _lease_of(model_id), desk.owner, now):  # and lets it go
            store_result(session, model_id, result, now)


def store_result(session: Session, model_id: int, result: JSON, at: datetime) -> None:
    """Store what came of a test call on the model's row."""
    tested = {"tested_at": at, "test_result": result}
    session.execute(update(LanguageModel).where(LanguageModel.id == model_id).values(**tested))


def _take_lease(desk: WorkerContext, model_id: int) -> bool:
    """Hold the lease for as long as a call may take; a worker that dies meanwhile is replaced when it runs out."""
    until = datetime.now(UTC) + timedelta(seconds=desk.settings.TURN_SECONDS) + PATIENCE
    try:
        with writing(desk.database) as session:
            row = session.get(LanguageModel, model_id)
            if row is None or row.kind == "scripted" or not waits_for_test(row):
                return False
            return take_or_renew_lease(session, _lease_of(model_id), desk.owner, until)
    except IntegrityError:  # two workers at the model's first test call, and the other was quicker
        return False


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
