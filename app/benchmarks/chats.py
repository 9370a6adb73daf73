"""The chats that a benchmark sends to a model behind an API, each a separate request with its generation.

A request is created just before it is made. If its worker dies, it is made by the next run, or by whichever worker
upkeep calls; its answer counts either way.
"""

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.benchmarks.job import BENCHMARK
from app.core.errors import AppError
from app.core.extensions import reading, writing
from app.jobs import states
from app.jobs.spec import JobBudget
from app.jobs.spending import BudgetReached, budget_of, reached
from app.matches.turns import WorkerContext
from app.model_calls import request_lifecycle
from app.model_calls.request_runner import make_request
from app.models import BenchmarkAnswer, GenerationRow, LanguageModel, ModelRequest
from app.players import make_player
from app.players.base import ChatSampling, ModelPlayer
from app.registry import player_spec
from app.registry.spending import spent_on_calls

MOST_THREADS = 64
_LOOK = 0.5  # seconds between checks of a request made by another worker


class BenchmarkChats:
    """Calls the model of a job, with its limits and retries."""

    def __init__(self, context: WorkerContext, job_id: int) -> None:
        self._context = context
        self._job_id = job_id
        with reading(context.database) as session:
            row = session.get_one(LanguageModel, BENCHMARK.get(session, job_id).model_id)
            self._model_id = row.id
            player = cast(ModelPlayer, make_player(player_spec(row), context.settings.home))
        self.at_once = min(player.at_once, MOST_THREADS)

    def ask(self, key: str, text: str, most_tokens: int) -> None:
        """Get the likeliest answer of at most `most_tokens`, and store it.

        Raises AppError if there is none, and BudgetReached.
        """
        with writing(self._context.database) as session:
            self.check_budget(session)
            number = self._find_or_create_request(session, key, text, most_tokens)
        make_request(self._context, number)
        while True:
            with reading(self._context.database) as session:
                request = session.get_one(ModelRequest, number)
                if request.status == states.DONE:
                    return
                if request.status == states.FAILED:
                    raise AppError(f"a chat got no answer: {request.error}")
            if self._context.stopping.wait(_LOOK):
                return

    def check_budget(self, session: Session) -> None:
        """Raises BudgetReached for a job whose answers have used up its budget."""
        budget = budget_of(BENCHMARK.get(session, self._job_id), self._context.settings)
        if budget == JobBudget():
            return
        asked = select(BenchmarkAnswer.request_id).where(BenchmarkAnswer.job_id == self._job_id)
        if (line := reached(budget, spent_on_calls(session, GenerationRow.request_id.in_(asked)))) is not None:
            raise BudgetReached(line)

    def _find_or_create_request(self, session: Session, key: str, text: str, most_tokens: int) -> int:
        """The number of the request: an existing one that has not failed, or a new one."""
        asked = select(BenchmarkAnswer).where(BenchmarkAnswer.job_id == self._job_id, BenchmarkAnswer.key == key)
        answer = session.scalar(asked)
        if answer is not None:
            request = session.get_one(ModelRequest, answer.request_id)
            if request.status in (*states.OPEN, states.DONE):
                return request.id
        new = request_lifecycle.create(
            session,
            session.get_one(LanguageModel, self._model_id),
            request_lifecycle.BENCHMARK,
            [{"role": "user", "content": text}],
            ChatSampling(temperature=0.0, max_tokens=most_tokens),
        )
        session.merge(BenchmarkAnswer(job_id=self._job_id, key=key, request_id=new.id))
        session.flush()
        return new.id
