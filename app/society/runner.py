"""One worker at one society: it runs all interactions of an iteration concurrently, then those of the next.

The interactions of an iteration do not depend on each other, because memories are read as they were when it began. A
call that was answered once is never made again: a resumed society gives the same result as an uninterrupted one, if its
models answer alike.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.core.extensions import reading
from app.jobs.context import JobContext
from app.matches.turns import WorkerContext
from app.model_calls.job_calls import ChatCalls, together
from app.model_calls.job_worker import CallingWorker, called_models, run_job
from app.models import Society, SocietyAgent, SocietyInteraction
from app.players.base import ChatSampling
from app.society import prompts, store, world
from app.society.config import SocietyConfig
from app.society.embedders.base import Embedder
from app.society.embedding_calls import SocietyEmbedder
from app.society.job import SOCIETY
from app.society.memories import SocietyMemories
from app.society.steps import InteractionSteps, Recalls, SocietyModels


def run(context: WorkerContext, number: int) -> None:
    """Run a society until it is over, or it or the worker is stopped; do nothing if another worker runs it.

    Any error is stored on the society's row.
    """
    asyncio.run_coroutine_threadsafe(run_society(context, number), context.loop).result()


async def run_society(context: JobContext, number: int) -> None:
    """See `run`; on the running event loop."""
    await run_job(context, SOCIETY, number, _SocietyWorker)


class _SocietyWorker(CallingWorker):
    """See `run`."""

    def __init__(self, context: JobContext, session: Session, row: Society) -> None:
        """Set up the worker. Raises Invalid for a model or an embedder that cannot be called."""
        agents = store.agents_of(session, row.id)
        self._models = _models(session, row, agents, context)
        super().__init__(context, SOCIETY, SocietyInteraction, row, {model.id: model for model in self._models.each})
        self._config = SocietyConfig.model_validate(row.config)
        self._questions: Sequence[str] = row.questions
        self._iteration = row.iteration
        self._template = row.template
        self._embedder = SocietyEmbedder.of(session, row, self.writer) if self._config.recall else None
        self._memories: SocietyMemories | None = None

    async def make(self) -> None:
        """Run all unfinished interactions. Raises ChatBlocked, and EmbedderFailed for an embedder without vectors."""
        if self._embedder is not None:
            self._memories = await self._embedder.asked(partial(self._load_memories, self._embedder.embedder))
        for iteration in range(self._iteration, self._config.iterations):
            config = self._config
            places = [
                world.question_of(config, iteration, agent, len(self._questions)) for agent in range(config.agents)
            ]
            questions = [self._questions[place] for place in places]
            if self._embedder is not None and self._memories is not None:
                await self._embedder.asked(partial(self._memories.prepare, questions))
            await self.writer.flush(
                lambda session, i=iteration, q=questions: store.open_iteration(session, self._number, i, q)  # type: ignore[misc]
            )
            await together(*(each.make() for each in await asyncio.to_thread(self._open_steps, iteration)))
            await self.writer.flush()
            if self._memories is not None:
                await asyncio.to_thread(self._remember_iteration, self._memories, iteration)
            self.writer.count(iteration=1)

    def _load_memories(self, embedder: Embedder) -> SocietyMemories:
        with reading(self.context.database) as session:
            row = SOCIETY.get(session, self._number)
            return SocietyMemories.load(session, row, store.agents_of(session, row.id), embedder)

    def _open_steps(self, iteration: int) -> list[InteractionSteps]:
        """The unfinished interactions of an iteration, with the answers already given in them."""
        with reading(self.context.database) as session:
            rows = store.open_interactions(session, self._number, iteration)
            answers = store.answered_calls(session, [row.id for row in rows])
        return [self._interaction_steps(row, answers[row.id]) for row in rows]

    def _interaction_steps(self, row: SocietyInteraction, answers: Mapping[str, str]) -> InteractionSteps:
        config = self._config
        critics = world.critics_of(config, row.iteration, row.agent)
        recalls: Recalls = {}
        if (memories := self._memories) is not None:
            recalls = {agent: memories.recall(agent, row.question, row.iteration) for agent in (row.agent, *critics)}
        seed = f"society {config.seed} {row.iteration} {row.agent}"
        sampling = ChatSampling(temperature=config.temperature, max_tokens=config.max_tokens)
        calls = ChatCalls({"interaction_id": row.id}, seed, sampling, self.writer, answers)
        return InteractionSteps(
            row.id, row.agent, row.question, critics, recalls, config, self._models, calls, self.writer, self._template
        )

    def _remember_iteration(self, memories: SocietyMemories, iteration: int) -> None:
        with reading(self.context.database) as session:
            memories.remember(session, self._number, iteration)


def _models(session: Session, row: Society, agents: Sequence[SocietyAgent], context: JobContext) -> SocietyModels:
    """The models of a society; one that is both agent and observer occurs once, so that both share its limits."""
    of_agents = [each.model_id for each in agents if each.model_id is not None]
    observers = [each["model_id"] for each in row.observers]
    known = called_models(session, [*of_agents, *observers], context)
    systems = {each["model_id"]: prompts.chat_system(row.template) for each in row.agents if each["system"]}
    return SocietyModels([known[number] for number in of_agents], [known[number] for number in observers], systems)
