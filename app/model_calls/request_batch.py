"""Many questions to one model, several at a time, answered in their order; each is a request with its generation."""

import threading
import uuid
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, cast

from sqlalchemy import Engine

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.core.failures import REFUSED, UNSUITED
from app.games.base import JSON
from app.jobs.event_loop import running_loop
from app.jobs.spec import JobBudget
from app.jobs.spending import Spent, reached, spent_on, with_usual_budget
from app.matches.turns import WorkerContext
from app.model_calls import request_lifecycle
from app.model_calls.request_runner import make_request
from app.models import ModelRequest
from app.players import make_player
from app.players.base import ChatPlayer, ChatSampling
from app.registry import get_model, player_spec
from app.registry.prices import check_budget

MOST_THREADS = 64
_AHEAD = 4  # questions taken for each that may be in flight, so that a slow one holds up no other


class BatchAnswer(NamedTuple):
    """The result of a question, as its request has it, with the request's number."""

    request: int
    result: JSON

    def ends_batch(self, answered: int) -> bool:
        """Whether the question got no answer and further ones hardly would either; `answered` counts those answered
        before.
        """
        passing = (REFUSED, UNSUITED) if answered else (REFUSED,)
        return not self.result["ok"] and self.result.get("kind") not in passing


class _Spending:
    """The spending of a batch's questions, against their budget. Shared between threads."""

    def __init__(self, budget: JobBudget) -> None:
        self._budget = budget
        self._spent = Spent()
        self._lock = threading.Lock()

    def refusal(self) -> JSON | None:
        """The result of a question that is no longer asked because of the budget; None while questions are asked."""
        line = reached(self._budget, self._spent)
        return None if line is None else {"ok": False, "error": line}

    def add(self, result: JSON) -> None:
        """Add the spending of a question that was asked."""
        with self._lock:
            self._spent += spent_on(result)


def ask_all(
    database: Engine,
    settings: Settings,
    name: str,
    chats: Iterable[list[dict[str, str]]],
    sampling: ChatSampling,
    budget: JobBudget = JobBudget(),  # noqa: B008 - it cannot change
) -> Generator[BatchAnswer]:
    """Ask a model every chat, as many at once as it allows, and yield the results in order.

    If the caller stops iterating, no more questions are asked, and those under way are waited for. When the budget is
    reached, the remaining questions get a result that says so, after all those that were asked; without a budget in
    money, that of the settings applies. Raises as `request_lifecycle.create` does, and Invalid for a budget in money if
    a price is unknown.
    """
    with reading(database) as session:
        row = get_model(session, name)
        check_budget(budget, [row])
        spec, spending = player_spec(row), _Spending(with_usual_budget(budget, settings))
    at_once = min(cast(ChatPlayer, make_player(spec, settings.home)).at_once, MOST_THREADS)
    with running_loop() as loop, ThreadPoolExecutor(at_once) as pool:
        owner = uuid.uuid4().hex
        context = WorkerContext(database, settings, owner, loop=loop, notify=lambda _match, _typing: None)
        waiting: deque[Future[BatchAnswer]] = deque()
        try:
            for chat in chats:
                waiting.append(pool.submit(_ask_model, context, name, chat, sampling, spending))
                if len(waiting) >= at_once * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()


def _ask_model(
    context: WorkerContext, name: str, chat: list[dict[str, str]], sampling: ChatSampling, spending: _Spending
) -> BatchAnswer:
    if (refused := spending.refusal()) is not None:
        return BatchAnswer(0, refused)
    with writing(context.database) as session:
        row = get_model(session, name)
        number = request_lifecycle.create(session, row, request_lifecycle.QUESTION, chat, sampling).id
    make_request(context, number)
    with reading(context.database) as session:
        request = session.get_one(ModelRequest, number)
        found = BatchAnswer(number, request.result or {"ok": False, "error": "somebody else makes this request"})
    spending.add(found.result)
    return found
