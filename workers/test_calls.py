"""Test calls of language models."""

from celery import shared_task

from app.matches.test_call import try_model
from app.queues import TEST_MODEL
from workers.context import desk_for_a_turn


@shared_task(name=TEST_MODEL, ignore_result=True)  # type: ignore[untyped-decorator]
def test(model_id: int) -> None:
    """Make the test call of a model, and keep what came of it."""
    try_model(desk_for_a_turn(), model_id)
