"""Whoever waits for the ledger can be stopped at any moment."""

import asyncio

from sqlalchemy import create_engine

from app.jobs.spec import JobBudget
from app.jobs.spending import SpendingGate, Spent
from app.rounds.writer import RoundWriter


def test_a_wait_for_the_ledger_is_cancelled_even_in_the_moment_in_which_it_writes() -> None:
    async def cancelled_after(steps: int) -> bool | None:
        """Whether the wait ended as cancelled; None if it was over before."""
        ledger = RoundWriter(
            create_engine("sqlite://"),
            1,
            "a worker",
            60.0,
            lambda _round_id: None,
            SpendingGate(JobBudget(), Spent()),
            {},
        )
        writer = asyncio.create_task(ledger.write_forever())
        waiting = asyncio.create_task(ledger.written(60.0))
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(ledger.close(writer, lambda _session: None))
        for _ in range(steps):
            await asyncio.sleep(0)
        asked = waiting.cancel()
        await asyncio.wait([waiting])
        await closing
        return waiting.cancelled() if asked else None

    ended = [asyncio.run(cancelled_after(steps)) for steps in range(8)]
    assert True in ended
    assert None in ended  # so the moment of writing is among those tried
    assert False not in ended
