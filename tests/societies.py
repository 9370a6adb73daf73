"""Societies for tests: made, run in this process, and told as facts that can be compared."""

import asyncio
import hashlib
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.jobs.context import JobContext
from app.models import GenerationRow, LanguageModel, Society, SocietyInteraction
from app.registry import CHAT_USE, add_api_model
from app.society import lifecycle
from app.society.job import SOCIETY
from app.society.material import PriorMemories, QuestionList
from app.society.runner import run_society
from app.society.spec import SocietySpec
from tests.stub_openai import Messages

TOPICS = ("a borrowed book", "a broken vase", "a late train", "an old friend", "a loud party", "a lost key")
QUESTIONS = QuestionList("a test", [f"What should I do about {topic}?" for topic in TOPICS])
PRIORS = PriorMemories(
    "a test",
    {
        label: [(f"What would you do about {topic}?", f"Something {label}, again {label}.") for topic in TOPICS]
        for label in ("good", "bad")
    },
)


def opinion(messages: Messages) -> str:
    """Says one of many things, by what it was sent alone, with a rating; now and then without one."""
    drawn = int.from_bytes(hashlib.sha256(repr(messages).encode()).digest()[:6])
    if drawn % 9 == 0:
        return f"I would rather not say, {drawn % 97}."
    return f"Rating: {1 + drawn % 7}\nReason: so it is, {drawn % 89} times."


def add_chat_models(engine: Engine, base_url: str, *names: str, **options: Any) -> None:
    """Register API models that are called as they are named, for chats."""
    with writing(engine) as session:
        for name in names:
            full = {"model": name, "base_url": base_url, "key_env": "", "retries": 0, **options}
            row = add_api_model(session, name, f"Label of {name}", ["negotiation"], full)
            row.uses = [*row.uses, CHAT_USE] if CHAT_USE not in row.uses else row.uses


def spec_of(*agents: str, observers: Sequence[str] = (), **config: Any) -> SocietySpec:
    """A small society of these models; the first of them observes, unless others do."""
    fields = {"size": 2, "iterations": 2, "critics": 2, "first_memories": 3, "setting": "half_half", "seed": 5}
    members = {"agents": dict.fromkeys(agents, 1.0), "observers": [*(observers or agents[:1])]}
    return SocietySpec.read({**members, "config": {**fields, **config}})


def create(session: Session, spec: SocietySpec, *, queued: bool = False) -> Society:
    """A society that waits, with the questions and memories of tests."""
    return lifecycle.create(session, spec, QUESTIONS, PRIORS, queued=queued)


def make_society(
    engine: Engine, *agents: str, observers: Sequence[str] = (), queued: bool = False, **config: Any
) -> int:
    with writing(engine) as session:
        return create(session, spec_of(*agents, observers=observers, **config), queued=queued).id


def run(engine: Engine, settings: Settings, number: int, until: Callable[[], bool] = lambda: False) -> None:
    """Run a society to its end, or until something has happened, as a worker does."""

    async def work() -> None:
        stop = threading.Event()
        running = asyncio.ensure_future(run_society(JobContext(engine, settings, uuid.uuid4().hex, stop), number))
        while not (running.done() or stop.is_set()):
            await asyncio.wait([running], timeout=0.01)
            if until():
                stop.set()
        await running

    asyncio.run(work())


def row_of(engine: Engine, number: int) -> Society:
    with reading(engine) as session:
        return SOCIETY.get(session, number)


def model_of(engine: Engine, name: str) -> LanguageModel:
    with reading(engine) as session:
        return session.scalars(select(LanguageModel).where(LanguageModel.name == name)).one()


def facts(engine: Engine, number: int) -> dict[tuple[int, int], Any]:
    """All that was made, by iteration and agent, without ids, times and latencies. No call is there twice."""
    found: dict[tuple[int, int], Any] = {}
    table = SocietyInteraction
    columns = (
        "status", "question", "recall", "draft", "feedback", "revision", "alignment_before", "engagement_before",
        "alignment_after", "engagement_after", "observations", "error",
    )  # fmt: skip
    with reading(engine) as session:
        rows = session.scalars(select(table).where(table.society_id == number).order_by(table.iteration, table.agent))
        for row in rows:
            calls = session.scalars(select(GenerationRow).where(GenerationRow.interaction_id == row.id))
            answered = sorted((call.call, repr(call.prompt), call.text) for call in calls if call.error is None)
            assert len({call for call, *_ in answered}) == len(answered), "a call is there twice"
            found[row.iteration, row.agent] = {name: getattr(row, name) for name in columns} | {"calls": answered}
    return found
