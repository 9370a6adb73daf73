"""Language models' turns in live matches."""

from celery import shared_task

from app.core.queues import PLAY_TURN
from app.matches.turns import play_turn
from workers.context import context_for_task


@shared_task(name=PLAY_TURN, ignore_result=True)  # type: ignore[untyped-decorator]
def play(match_id: str) -> None:
    """Play the turn that is due in a match, unless another worker does."""
    play_turn(context_for_task(), match_id)
