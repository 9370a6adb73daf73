"""Rounds for tests: made, played by workers in this process, and told as facts that can be compared."""

import asyncio
import hashlib
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Engine, select

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.context import JobContext
from app.matches.events import Aborted, Violated, from_json
from app.models import EventRow, GenerationRow, MatchRow, RoundRow, SeatRow
from app.registry import add_api_model
from app.rounds import lifecycle
from app.rounds.job import ROUND
from app.rounds.lifecycle import Material
from app.rounds.plan import IN_ORDER
from app.rounds.runner import play_round
from app.rounds.spec import RoundSpec
from app.web.admin.spec_form import filled_in
from tests.stub_openai import Messages

CONTEXTS = Material(
    "a test",
    [
        [[1, 2, 2], [10, 0, 0], [0, 3, 2]],
        [[3, 1, 1], [1, 4, 3], [2, 1, 3]],
        [[2, 2, 1], [2, 3, 0], [1, 0, 8]],
        [[1, 1, 4], [0, 2, 2], [4, 6, 0]],
        [[2, 1, 3], [0, 1, 3], [3, 4, 0]],
    ],
)
WORDS = Material("a test", ["lemon", "pencil", "river", "window", "garden", "candle", "mirror"])


def haggler(messages: Messages) -> str:
    """A negotiator that says one of many things, by what it was sent alone; now and then it breaks a rule."""
    drawn = int.from_bytes(hashlib.sha256(repr(messages).encode()).digest()[:6])
    own = sum(message["role"] == "assistant" for message in messages)
    rules = messages[0]["content"]
    counts = [int(number) for number in re.findall(r"^(?:books|hats|balls): (\d+)", rules, re.MULTILINE)]
    proposal = "[propose] ({} books, {} hats, {} balls)"
    if "made a proposal" in messages[-1]["content"] or own >= 3:
        return proposal.format(*(drawn // 7**place % (count + 1) for place, count in enumerate(counts)))
    if drawn % 6 == 0:
        return f"I forgot the form {drawn % 97}."
    return f"[message] What about {drawn % 89} of these and {drawn % 83} of those?"


def add_models(engine: Engine, base_url: str, *names: str, **options: Any) -> None:
    """Register API models that are called as they are named."""
    with writing(engine) as session:
        for name in names:
            full = {"model": name, "base_url": base_url, "key_env": "", "retries": 0, **options}
            add_api_model(session, name, f"Label of {name}", ["negotiation", "taboo"], full)


def make_round(engine: Engine, *models: str, game: str = "negotiation", queued: bool = False, **wish: Any) -> int:
    """A round of two models, or of one against itself; contexts and words are those of the tests."""
    material = wish.pop("material", CONTEXTS if game == "negotiation" else WORDS)
    usual = {"game": game, "models": models[:1] + models[-1:], "matches": 30, "seed": 7, "pick": IN_ORDER}
    spec = RoundSpec.read({**usual, **wish})
    with writing(engine) as session:
        return lifecycle.create(session, spec, material, queued=queued).id


def round_form(game: str) -> dict[str, Any]:
    """The form of rounds of the scripted player, as a browser sends it when nothing was changed."""
    return {**filled_in(RoundSpec, {"game": game, "models": ["scripted"]}), "action": "start"}


def play(
    engine: Engine, settings: Settings, round_id: int, *, workers: int = 1, until: Callable[[], bool] = lambda: False
) -> None:
    """Play a round to its end, by so many workers at once, or until something has happened."""

    async def work() -> None:
        stop = threading.Event()
        contexts = [JobContext(engine, settings, uuid.uuid4().hex, stop) for _ in range(workers)]
        playing = asyncio.gather(*(play_round(context, round_id) for context in contexts))
        while not (playing.done() or stop.is_set()):
            await asyncio.wait([playing], timeout=0.02)
            if until():
                stop.set()
        await playing

    asyncio.run(work())


def row_of(engine: Engine, round_id: int) -> RoundRow:
    with reading(engine) as session:
        return ROUND.get(session, round_id)


def facts(engine: Engine, round_id: int) -> dict[int, Any]:
    """All that was played, by index, without ids, times and latencies."""
    with reading(engine) as session:
        found = {}
        for match in session.scalars(select(MatchRow).where(MatchRow.round_id == round_id).order_by(MatchRow.index)):
            events = session.scalars(select(EventRow).where(EventRow.match_id == match.id).order_by(EventRow.seq)).all()
            seats = session.execute(
                select(SeatRow.seat, SeatRow.role, SeatRow.language_model_id)
                .where(SeatRow.match_id == match.id)
                .order_by(SeatRow.seat)
            )
            calls = session.scalars(select(GenerationRow).where(GenerationRow.match_id == match.id))
            assert match.index not in found, f"match {match.index} is there twice"
            found[match.index] = {
                "seed": match.seed,
                "config": match.config,
                "status": match.status,
                "end": (
                    match.reason,
                    match.winner,
                    match.utility_0,
                    match.utility_1,
                    match.agreed,
                    match.pareto_optimal,
                ),
                "figures": (match.ply, match.violations, match.words, match.tokens, match.first_proposal),
                "seats": [tuple(seat) for seat in seats],
                "log": [(each.seq, each.kind, each.seat, each.ply, each.body) for each in events],
                "calls": sorted(
                    (call.ply, call.attempt, call.seat, repr(call.prompt), call.text)
                    for call in calls
                    if call.error is None
                ),
            }
    return found


def check(engine: Engine, round_id: int, matches: int) -> dict[int, Any]:
    """Nothing is missing, doubled or miscounted in a round that is done. Returns its facts."""
    told = facts(engine, round_id)
    row = row_of(engine, round_id)
    assert sorted(told) == list(range(matches))
    assert (row.status, row.finished) == (states.DONE, matches)
    logs = [[from_json(body) for *_, body in match["log"]] for match in told.values()]
    assert all(match["status"] == "over" for match in told.values())
    for match in told.values():
        assert [seq for seq, *_ in match["log"]] == list(range(len(match["log"])))
        turns = Counter((ply, attempt) for ply, attempt, *_ in match["calls"])
        assert all(number == 1 for number in turns.values()), turns
    assert row.moves == sum(match["figures"][0] for match in told.values())
    assert row.violations == sum(isinstance(event, Violated) for log in logs for event in log)
    assert row.aborted == sum(isinstance(event, Aborted) for log in logs for event in log)
    return told


def calls_of(told: Sequence[Any] | dict[int, Any]) -> int:
    """How many answers of models there are."""
    return sum(len(match["calls"]) for match in (told.values() if isinstance(told, dict) else told))
