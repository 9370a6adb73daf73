"""Requests to language models that belong to no match."""

from celery import shared_task

from app.core.queues import MAKE_REQUEST
from app.model_calls.request_runner import make_request
from workers.context import context_for_task


@shared_task(name=MAKE_REQUEST, ignore_result=True)  # type: ignore[untyped-decorator]
def make(number: int) -> None:
    """Make a request, and store its result."""
    make_request(context_for_task(), number)
