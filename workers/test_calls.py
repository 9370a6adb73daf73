"""Test calls of language models."""

from celery import shared_task

from app.matches.test_call import make_test_call
from app.queues import TEST_MODEL
from workers.context import context_for_task


@shared_task(name=TEST_MODEL, ignore_result=True)  # type: ignore[untyped-decorator]
def test(model_id: int) -> None:
    """Make the test call of a model, and keep what came of it."""
    make_test_call(context_for_task(), model_id)
