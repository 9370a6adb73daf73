"""How much one model is asked at once, and in which order."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from app.players.api.limits import RateLimits


class Clock(asyncio.SelectorEventLoop):
    """A loop on which waiting costs no time: its clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def time(self) -> float:
        return self.ahead

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.ahead = max(self.ahead, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(coroutine)


async def use(limits: RateLimits, seconds: float, tokens: int = 0, used: int | None = None) -> float:
    """Send a request that takes so long; the moment at which it was let through."""
    await limits.enter(tokens)
    began = asyncio.get_running_loop().time()
    try:
        await asyncio.sleep(seconds)
    finally:
        limits.leave(tokens, used)
    return began


def test_no_more_are_in_flight_than_allowed_and_who_came_first_goes_first() -> None:
    async def seven() -> list[float]:
        limits = RateLimits(3)
        return await asyncio.gather(*(use(limits, 1) for _ in range(7)))

    assert run(seven()) == [0, 0, 0, 1, 1, 1, 2]


def test_no_minute_has_more_tokens_than_allowed_and_hardly_fewer() -> None:
    async def many() -> list[float]:
        limits = RateLimits(50, 6000)
        return await asyncio.gather(*(use(limits, 0.2, 30, 30) for _ in range(500)))

    sent = sorted(run(many()))
    for moment in sent:
        assert 30 * sum(moment <= each < moment + 60 for each in sent) <= 6000
    assert sent[-1] < 60 * 500 * 30 / 6000 / 0.94


def test_the_estimate_gives_way_to_what_the_server_has_counted() -> None:
    async def overestimated(used: int | None) -> float:
        limits = RateLimits(50, 6000)
        return max(await asyncio.gather(*(use(limits, 0.1, 200, used) for _ in range(100))))

    assert run(overestimated(20)) < 0.15 * run(overestimated(200))
    assert run(overestimated(None)) == pytest.approx(run(overestimated(200)))


def test_a_request_larger_than_the_burst_is_sent_and_paid_off_after() -> None:
    async def large() -> list[float]:
        limits = RateLimits(4, 6000)  # 300 at once, 95 a second
        return await asyncio.gather(*(use(limits, 0, 900, 900) for _ in range(3)))

    assert run(large()) == [0, pytest.approx(900 / 95), pytest.approx(1800 / 95)]


def test_a_server_that_wants_a_pause_gets_it_from_everybody() -> None:
    async def held() -> list[float]:
        limits = RateLimits(2)
        early = asyncio.ensure_future(use(limits, 1))
        await asyncio.sleep(0)
        limits.hold(5)
        limits.hold(2)  # an earlier end changes nothing
        late = await asyncio.gather(*(use(limits, 1) for _ in range(3)))
        return [await early, *late]

    assert run(held()) == [0, 5, 5, 6]


@pytest.mark.parametrize("whom", [0, 1, 2, 3])
def test_whoever_gives_up_waiting_takes_nothing_along(whom: int) -> None:
    async def one_goes() -> list[float]:
        limits = RateLimits(1)
        tasks = [asyncio.ensure_future(use(limits, 1)) for _ in range(4)]
        await asyncio.sleep(0.5)
        tasks.pop(whom).cancel()
        return await asyncio.gather(*tasks)

    assert run(one_goes()) == ([0.5, 1.5, 2.5] if whom == 0 else [0, 1, 2])


def test_giving_up_in_the_moment_of_being_let_through_is_no_loss() -> None:
    async def both_at_once() -> float:
        limits = RateLimits(1, 6000)
        await limits.enter(300)
        second = asyncio.ensure_future(limits.enter(0))
        await asyncio.sleep(0)
        limits.leave(300, 0)  # lets the second one through, which
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        return await use(limits, 0, 300)

    assert run(both_at_once()) == 0


def test_a_small_request_does_not_wait_for_a_large_one_that_gave_up() -> None:
    async def large_goes() -> float:
        limits = RateLimits(9, 6000)
        await limits.enter(290)
        large = asyncio.ensure_future(limits.enter(300))
        small = asyncio.ensure_future(use(limits, 0, 10))
        await asyncio.sleep(0)
        large.cancel()
        return await small

    assert run(large_goes()) == 0


def test_of_two_rows_about_one_model_the_lower_numbers_hold() -> None:
    limits_of_both: list[tuple[int, int | None]] = []

    async def narrowed() -> None:
        limits = RateLimits(8)
        for in_flight, tokens in ((4, None), (16, 9000), (16, 600), (16, 1000)):
            limits.narrow(in_flight, tokens)
            limits_of_both.append((limits.in_flight, limits.tokens_per_minute))

    run(narrowed())
    assert limits_of_both == [(4, None), (4, 9000), (4, 600), (4, 600)]
