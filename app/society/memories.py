"""The memories of all agents of a society: their first ones, and what they were asked and answered since."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.models import Society, SocietyAgent
from app.society import store
from app.society.config import SocietyConfig
from app.society.embedders.base import Embedder
from app.society.interaction import Recall
from app.society.memory import AgentMemory, QuestionVectors


class SocietyMemories:
    """The memories of each agent; questions recall what was remembered in earlier iterations."""

    def __init__(self, vectors: QuestionVectors, agents: Sequence[AgentMemory]) -> None:
        self._vectors = vectors
        self._agents = agents

    @classmethod
    def load(
        cls, session: Session, row: Society, agents: Sequence[SocietyAgent], embedder: Embedder
    ) -> "SocietyMemories":
        """The memories after the finished iterations of a society. Blocks for as long as its embedder does.

        Raises EmbedderFailed if the embedder returns no vectors.
        """
        config = SocietyConfig.model_validate(row.config)
        pairs = {label: [(question, answer) for question, answer in found] for label, found in row.priors.items()}
        vectors = QuestionVectors(embedder)
        vectors.add(pairs[each.label][place][0] for each in agents for place in each.first_memories)
        made = cls(
            vectors,
            [
                AgentMemory(vectors, config.threshold, [pairs[each.label][place] for place in each.first_memories])
                for each in agents
            ],
        )
        for iteration in range(row.iteration):
            made.remember(session, row.id, iteration)
        return made

    def remember(self, session: Session, society_id: int, iteration: int) -> None:
        """Add to each agent's memory its question of an iteration, and its final answer."""
        for agent, question, answer in store.answers_of(session, society_id, iteration):
            self._agents[agent].remember(question, answer, iteration)

    def prepare(self, questions: Sequence[str]) -> None:
        """Embed the questions of an iteration together. Blocks, and raises EmbedderFailed."""
        self._vectors.add(questions)

    def recall(self, agent: int, question: str, iteration: int) -> Recall | None:
        """What a question recalls for an agent, if anything."""
        return self._agents[agent].recall(question, iteration)
