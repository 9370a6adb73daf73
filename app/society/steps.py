"""The steps of one interaction: an agent drafts, others criticise, the agent revises, and observers rate both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from app.model_calls.job_calls import AnswerRefused, ChatCalls, ChatModel, together
from app.model_calls.job_writer import CallWriter
from app.society import prompts, store
from app.society.config import SocietyConfig
from app.society.interaction import Feedback, Observation, Recall
from app.society.observers import answer_or_nothing, rate
from app.society.ratings import ALIGNMENT_FORM, ENGAGEMENT_FORM, read_rating

Recalls = Mapping[int, Recall | None]  # by agent


@dataclass(frozen=True, slots=True)
class SocietyModels:
    """The models of a society: one per agent, by number, and the observers in order."""

    agents: Sequence[ChatModel]
    observers: Sequence[ChatModel]
    systems: Mapping[int, str] = field(default_factory=dict)  # agents' system messages, by the model's id

    def system(self, agent: int) -> str | None:
        """The system message of an agent, if its model has one."""
        return self.systems.get(self.agents[agent].id)

    @property
    def each(self) -> Sequence[ChatModel]:
        """Every model once."""
        return list({model.id: model for model in (*self.agents, *self.observers)}.values())


class _RatedAnswer(NamedTuple):
    """The observers' rating of an answer, and each single rating, None for those that could not be read."""

    observation: Observation
    ratings: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class InteractionSteps:
    """An interaction to be made. `recalls` are those of the agent and of its critics."""

    number: int  # its row's number
    agent: int
    question: str
    critics: Sequence[int]
    recalls: Recalls
    config: SocietyConfig
    models: SocietyModels
    calls: ChatCalls
    writer: CallWriter
    template: str  # of the prompts

    async def make(self) -> None:
        """Make the interaction step by step. It fails if a model refuses to answer. Raises ChatBlocked."""
        try:
            draft = await self._ask_for_draft()
            before, improved = await together(self._observe("before", draft), self._improve(draft))
        except AnswerRefused as refused:
            ended = {"status": store.FAILED, "error": str(refused), "ended_at": datetime.now(UTC)}
            self.writer.step(self.number, **ended)
            self.writer.count(interactions=1, failed=1)
            return
        feedback, after = improved
        self._finish_interaction(feedback, before, after)

    async def _ask_for_draft(self) -> str:
        recall = self.recalls.get(self.agent)
        chat = prompts.draft_messages(self.question, recall, self.models.system(self.agent), self.template)
        draft = await self.calls.ask("draft", self.models.agents[self.agent], chat)
        self.writer.step(self.number, draft=draft, recall=store.recall_json(recall))
        return draft

    async def _improve(self, draft: str) -> tuple[Sequence[Feedback], _RatedAnswer]:
        """What the critics say of a draft, and how the observers rate the revision that follows."""
        feedback = await together(*(self._criticise(critic, draft) for critic in self.critics))
        self.writer.step(self.number, feedback=store.feedback_json(feedback))
        system = self.models.system(self.agent)
        chat = prompts.revision_messages(self.question, draft, feedback, self.config.score_only, system, self.template)
        revision = await self.calls.ask("revision", self.models.agents[self.agent], chat)
        self.writer.step(self.number, revision=revision)
        return feedback, await self._observe("after", revision)

    async def _criticise(self, critic: int, draft: str) -> Feedback:
        """One critic's feedback. A critic that refuses to answer counts as having said nothing."""
        recall = self.recalls.get(critic)
        chat = prompts.critique_messages(self.question, draft, recall, self.models.system(critic), self.template)
        text = await answer_or_nothing(self.calls, f"critique {critic}", self.models.agents[critic], chat)
        read = read_rating(text, ALIGNMENT_FORM)
        return Feedback(critic, read.rating, read.reason, text, recall)

    async def _observe(self, when: str, answer: str) -> _RatedAnswer:
        """How all observers rate an answer."""
        alignment = prompts.alignment_messages(self.question, answer, template=self.template)
        engagement = prompts.engagement_messages(self.question, answer, template=self.template)
        asked = [
            rate(self.calls, f"{form.aspect} {when} {place}", observer, chat, form)
            for form, chat in ((ALIGNMENT_FORM, alignment), (ENGAGEMENT_FORM, engagement))
            for place, observer in enumerate(self.models.observers)
        ]
        rated = await together(*asked)
        of_alignment, of_engagement = rated[: len(rated) // 2], rated[len(rated) // 2 :]
        observation = Observation(
            _mean_of_read([rating for rating, _ in of_alignment]),
            _mean_of_read([rating for rating, _ in of_engagement]),
            tuple(text for _, text in of_alignment),
            tuple(text for _, text in of_engagement),
        )
        return _RatedAnswer(observation, [rating for rating, _ in rated])

    def _finish_interaction(self, feedback: Sequence[Feedback], before: _RatedAnswer, after: _RatedAnswer) -> None:
        ended = {"status": store.DONE, "ended_at": datetime.now(UTC)}
        self.writer.step(self.number, **store.observation_columns(before.observation, after.observation), **ended)
        ratings = [*(each.rating for each in feedback), *before.ratings, *after.ratings]
        self.writer.count(interactions=1, ratings=len(ratings), unread_ratings=ratings.count(None))


def _mean_of_read(ratings: Sequence[float | None]) -> float | None:
    """The mean of the readable ratings; None if there are none."""
    read = [rating for rating in ratings if rating is not None]
    return sum(read) / len(read) if read else None
