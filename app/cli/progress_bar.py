"""Progress bars on stderr for rounds and trainings, if stderr is a terminal."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import click
from sqlalchemy import Engine, select

from app.core.extensions import reading
from app.games.base import JSON
from app.models import RoundRow

EVERY = 0.25  # seconds


async def rising(round_id: int, database: Engine) -> None:
    """Show matches, moves per second and the remaining time, until cancelled."""
    if not sys.stderr.isatty():
        return
    finished, moves, total = await asyncio.to_thread(_round_progress, database, round_id)
    began, moves_before = time.monotonic(), moves
    with click.progressbar(
        length=total, file=sys.stderr, label=f"Round {round_id}", show_pos=True, item_show_func=_pace
    ) as bar:
        bar.update(finished)
        try:
            while True:
                await asyncio.sleep(EVERY)
                finished, moves, _ = await asyncio.to_thread(_round_progress, database, round_id)
                bar.update(finished - bar.pos, (moves - moves_before) / (time.monotonic() - began))
        finally:
            finished, moves, _ = _round_progress(database, round_id)
            bar.update(finished - bar.pos, (moves - moves_before) / (time.monotonic() - began))


def _round_progress(database: Engine, round_id: int) -> tuple[int, int, int]:
    with reading(database) as session:
        row = session.execute(
            select(RoundRow.finished, RoundRow.moves, RoundRow.matches).where(RoundRow.id == round_id)
        ).one()
    return row.finished, row.moves, row.matches


_pace: Callable[[float | None], str | None] = lambda pace: None if pace is None else f"{pace:.0f} moves/s"  # noqa: E731


class TrainingBar:
    """The steps, loss and remaining time of a training job, shown from its first step on."""

    def __init__(self, job_id: int) -> None:
        self._label = f"Job {job_id}"
        self._bar: Any = None
        self._seen = sys.stderr.isatty()

    def show(self, events: Sequence[JSON]) -> None:
        """Advance to the last step among new events of the job."""
        step = next((each for each in reversed(events) if each["event"] == "step"), None)
        if step is None or not self._seen:
            return
        if self._bar is None:
            self._bar = click.progressbar(
                length=step["steps"], file=sys.stderr, label=self._label, show_pos=True, item_show_func=_loss
            ).__enter__()
        self._bar.update(step["step"] - self._bar.pos, step["loss"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)


_loss: Callable[[float | None], str | None] = lambda loss: None if loss is None else f"loss {loss:.4g}"  # noqa: E731
