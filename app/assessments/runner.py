"""A worker at one assessment: all answers and ratings in flight together, each call made once."""

import asyncio
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.assessments import lifecycle
from app.assessments.job import ASSESSMENT
from app.jobs.context import JobContext
from app.matches.turns import WorkerContext
from app.model_calls.job_calls import AnswerRefused, Chat, ChatCalls, together
from app.model_calls.job_worker import CallingWorker, called_models, run_job
from app.model_calls.question_templates import chat_of
from app.models import AssessedAnswer, Assessment
from app.players.base import ChatSampling
from app.society import prompts
from app.society.observers import RATING_SAMPLING, rate
from app.society.ratings import ALIGNMENT_FORM, ENGAGEMENT_FORM, RatingForm

AT_ONCE = 500  # answers processed together


def run(context: WorkerContext, number: int) -> None:
    """Run an assessment until it is over, or it or the worker is stopped; do nothing if another worker runs it.

    Any error is stored on its row.
    """
    asyncio.run_coroutine_threadsafe(run_assessment(context, number), context.loop).result()


async def run_assessment(context: JobContext, number: int) -> None:
    """See `run`; on the running event loop."""
    await run_job(context, ASSESSMENT, number, _AssessmentWorker)


class _AssessmentWorker(CallingWorker):
    """See `run`."""

    def __init__(self, context: JobContext, session: Session, row: Assessment) -> None:
        """Raises Invalid for a model that cannot be called."""
        raters = [each["model_id"] for each in row.raters]
        models = called_models(session, [row.model_id, row.base_id, *raters], context)
        super().__init__(context, ASSESSMENT, AssessedAnswer, row, models)
        self._models = models
        self._row = row
        self._raters = [models[number] for number in raters]
        self._questions: Sequence[str] = row.questions
        self._sampling = lifecycle.sampling_of(row)
        self._open = lifecycle.answers_of(session, row.id, status=lifecycle.OPEN)
        self._answered = lifecycle.answered_calls(session, row.id)

    async def make(self) -> None:
        """Get answers to all open questions and ratings of all answers. Raises ChatBlocked."""
        for first in range(0, len(self._open), AT_ONCE):
            await together(*(self._make_answer(each) for each in self._open[first : first + AT_ONCE]))

    async def _make_answer(self, row: AssessedAnswer) -> None:
        question = self._questions[row.question]
        model = self._models[self._row.base_id if row.of_base else self._row.model_id]
        try:
            text = await self._calls(row, self._sampling).ask("answer", model, chat_of(question))
        except AnswerRefused as refused:
            self.writer.step(row.id, status=lifecycle.FAILED, error=str(refused))
            self.writer.count(answers=1, failed=1)
            return
        self.writer.step(row.id, text=text)
        calls = self._calls(row, RATING_SAMPLING)
        template = self._row.template
        found = await together(
            self._ask_each_rater(calls, ALIGNMENT_FORM, prompts.alignment_messages(question, text, template=template)),
            self._ask_each_rater(
                calls, ENGAGEMENT_FORM, prompts.engagement_messages(question, text, template=template)
            ),
        )
        self.writer.step(row.id, status=lifecycle.DONE, alignment=found[0], engagement=found[1])
        ratings = [rating for aspect in found for rating in aspect]
        self.writer.count(answers=1, ratings=len(ratings), unread_ratings=ratings.count(None))

    async def _ask_each_rater(self, calls: ChatCalls, form: RatingForm, chat: Chat) -> list[float | None]:
        """One rating from each rater, in order."""
        asked = (rate(calls, f"{form.aspect} {place}", rater, chat, form) for place, rater in enumerate(self._raters))
        return [rating for rating, _ in await together(*asked)]

    def _calls(self, row: AssessedAnswer, sampling: ChatSampling) -> ChatCalls:
        # Both models answer a question with the same seed.
        seed = f"assessment {self._row.seed} {row.question}"
        return ChatCalls({"answer_id": row.id}, seed, sampling, self.writer, self._answered.get(row.id, {}))
