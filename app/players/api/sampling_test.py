"""Test whether a temperature that a server accepts has any effect: several servers silently ignore it.

The same short text is requested several times at the lowest and at the highest temperature that the server accepts.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import combinations

from app.core.errors import AppError
from app.players.api.options import ApiOptions
from app.players.api.player import ApiPlayer, Exchange
from app.players.api.server_findings import DRAWS, REFUSED, SENT, UNVERIFIED, SamplingCheck
from app.players.base import ChatSampling, Generation
from training.marks import broken_chat

_LOWEST = (0.0, 0.01)  # temperatures, of which the first is used that the server accepts
_HIGHEST = (2.0, 1.5, 1.0)
_LEAST_LIKELY = 0.01  # a difference that is less likely by chance is an effect


@dataclass(slots=True)
class SamplingTest:
    """The draws from one model. `found` is their result, `calls` are all that were made."""

    player: ApiPlayer
    calls: list[Generation] = field(default_factory=list)
    found: SamplingCheck | None = None

    async def run(self, messages: list[dict[str, str]], sampling: ChatSampling, seconds: float) -> Generation:
        """Draw, and compare. Returns the last call. Raises PlayerFailed, and TimeoutError after `seconds`."""
        chat = broken_chat(messages)
        async with asyncio.timeout(seconds):
            lowest = await self._draw(chat, sampling, _LOWEST)
            highest = await self._draw(chat, sampling, _HIGHEST) if lowest is not None else None
        verdict, p_value = REFUSED, None
        cold: Sequence[str] = ()
        hot: Sequence[str] = ()
        if lowest is not None and highest is not None:
            cold, hot = lowest.texts, highest.texts
            p_value = chance_of_variety(cold, hot)
            verdict = SENT if p_value <= _LEAST_LIKELY else UNVERIFIED
        self.found = SamplingCheck(
            at=datetime.now(UTC),
            verdict=verdict,
            draws=DRAWS,
            lowest=_LOWEST[0] if lowest is None else lowest.temperature,
            highest=_HIGHEST[0] if highest is None else highest.temperature,
            different_at_lowest=len(set(cold)),
            different_at_highest=len(set(hot)),
            p_value=p_value,
        )
        return self.calls[-1]

    async def _draw(
        self, chat: list[dict[str, str]], sampling: ChatSampling, temperatures: Sequence[float]
    ) -> "_Draws | None":
        """Draws at the first of these temperatures that the server accepts; None if it accepts no temperature."""
        for temperature in temperatures:
            player = ApiPlayer(self.player.name, _free_to_draw(self.player.options, temperature))
            first = self._record_call(await player.exchange(chat, sampling))
            if "temperature" in player.options.refused_fields:
                return None
            if first.outcome == "misconfigured" and temperature != temperatures[-1]:
                continue
            first.move()
            others = await asyncio.gather(*(player.exchange(chat, sampling) for _ in range(DRAWS - 1)))
            drawn = [first, *map(self._record_call, others)]
            return _Draws(temperature, [each.move().text or "" for each in drawn])
        raise AppError("expected a temperature that the server takes, got none of those that were tried")

    def _record_call(self, found: Exchange) -> Exchange:
        self.calls.append(found.generation)
        return found


@dataclass(frozen=True, slots=True)
class _Draws:
    temperature: float
    texts: Sequence[str]


def chance_of_variety(cold: Sequence[str], hot: Sequence[str]) -> float:
    """The probability of at least the observed surplus of different texts among the hot ones if temperature has no
    effect.

    An exact permutation test: of all ways to divide the texts between the two groups, the share in which the difference
    in the numbers of different texts is at least as large as observed.
    """
    every = [*cold, *hot]
    seen = len(set(hot)) - len(set(cold))
    ways = at_least = 0
    for chosen in combinations(range(len(every)), len(hot)):
        inside = set(chosen)
        here = {every[at] for at in chosen}
        there = {text for at, text in enumerate(every) if at not in inside}
        ways += 1
        at_least += len(here) - len(there) >= seen
    return at_least / ways


def _free_to_draw(options: ApiOptions, temperature: float) -> ApiOptions:
    """The options without those that make all draws alike, and without what was learnt about the temperature."""
    refused = tuple(name for name in options.refused_fields if name != "temperature")
    return replace(options, temperature=temperature, top_p=None, seed=None, refused_fields=refused)
