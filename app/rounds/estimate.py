"""Estimates of a round before it starts: calls, tokens, money, time. From past matches, or typical ones.

`estimate` is pure; `habit_of` and `channel_of` read what it needs about a model from the database.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from app.games import find_game
from app.games.base import JSON
from app.jobs.call_costs import Prices, TokenCounts, cost_of
from app.matches.filter import is_over
from app.models import GenerationRow, LanguageModel, MatchRow, RoundRow, SeatRow
from app.players.api import options as api_options
from app.registry import player_spec, read_options
from app.registry.prices import prices_of_model

SAMPLE = 100  # past matches from which a model's averages are taken
SCRIPTED_A_SECOND = 500.0  # matches that one process plays and stores without waiting for a model


class TokenStatistics:
    """Averages per call: the fields shared by those of rounds and of societies."""

    __slots__ = ()

    prompt_tokens: float
    completion_tokens: float
    cached_tokens: float
    cache_write_tokens: float
    reasoning_tokens: float
    cost: float | None  # USD, if the server gave the cost of each call

    @property
    def tokens(self) -> TokenCounts:
        return TokenCounts(
            self.prompt_tokens, self.completion_tokens, self.cached_tokens, self.cache_write_tokens,
            self.reasoning_tokens,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallStatistics(TokenStatistics):
    """The averages of a model in one seat of one match: calls, tokens of all of them, seconds of each.

    `matches` is the number of past matches behind them; 0: typical figures. Cache tokens are included in the prompt
    tokens, reasoning tokens in the completion tokens. `cost` is in USD, if the server reported the cost of every call.
    """

    calls: float
    prompt_tokens: float
    completion_tokens: float
    latency: float
    matches: int = 0
    cached_tokens: float = 0
    cache_write_tokens: float = 0
    reasoning_tokens: float = 0
    cost: float | None = None


_NOTHING = CallStatistics(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class ModelCapacity:
    """The limits of a model: requests at once, tokens a minute (None: unlimited), and token prices, if known."""

    scripted: bool
    at_once: int
    tokens_a_minute: int | None
    prices: Prices | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected totals. `cost` is in USD and None where a price is unknown; `basis`: past matches by model."""

    rounds: int
    matches: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float
    basis: Mapping[str, int]


def estimate(
    pairs: Sequence[tuple[str, str]],
    matches: int,
    habits: Mapping[str, CallStatistics],
    channels: Mapping[str, ModelCapacity],
) -> Estimate:
    """The estimate for that many matches of each pair. Habits and channels are by model name."""
    seats = {name: matches * sum(pair.count(name) for pair in pairs) for name in channels}
    callers = [name for name in channels if not channels[name].scripted]
    calls = {name: seats[name] * habits[name].calls for name in callers}
    tokens, cost = tokens_and_cost({name: seats[name] for name in callers}, habits, channels)
    return Estimate(
        rounds=len(pairs),
        matches=matches * len(pairs),
        calls=round(sum(calls.values())),
        prompt_tokens=round(sum(each.prompt for each in tokens.values())),
        completion_tokens=round(sum(each.completion for each in tokens.values())),
        cost=cost if callers else None,
        seconds=_estimated_seconds(
            matches * len(pairs),
            calls,
            {n: each.prompt + each.completion for n, each in tokens.items()},
            habits,
            channels,
        ),
        basis={name: habits[name].matches for name in callers},
    )


def tokens_and_cost(
    times: Mapping[str, float], habits: Mapping[str, TokenStatistics], channels: Mapping[str, ModelCapacity]
) -> tuple[dict[str, TokenCounts], float | None]:
    """The tokens of each model that repeats its habit so many times, and their total cost in USD.

    Costs reported by the server take precedence over prices; the cost is None if both are unknown for a model.
    """
    tokens = {name: habits[name].tokens.times(often) for name, often in times.items()}
    total = 0.0
    for name, often in times.items():
        said, prices = habits[name].cost, channels[name].prices
        if said is None and prices is None:
            return tokens, None
        total += cost_of(prices, tokens[name]) if said is None and prices is not None else often * (said or 0.0)
    return tokens, total


def _estimated_seconds(
    matches: int,
    calls: Mapping[str, float],
    tokens: Mapping[str, float],
    habits: Mapping[str, CallStatistics],
    channels: Mapping[str, ModelCapacity],
) -> float:
    """The longest of the lower bounds: all calls divided by the matches played at once, each model's calls divided by
    its concurrent requests and tokens a minute, and the calls of one match in sequence.
    """
    work = {name: number * habits[name].latency for name, number in calls.items()}
    at_once = min(matches, sum(channels[name].at_once for name in calls)) or 1
    one_match = sum(work.values()) / max(1, matches)
    limits = [matches / SCRIPTED_A_SECOND, sum(work.values()) / at_once, one_match]
    for name in calls:
        limits.append(work[name] / min(matches, channels[name].at_once))
        if a_minute := channels[name].tokens_a_minute:
            limits.append(60 * tokens[name] / a_minute)
    return max(limits)


# ---- What is known of a model ---------------------------------------------------


def typical(game: str, config: JSON) -> CallStatistics:
    """The typical averages of a model in a match about which nothing is known."""
    return CallStatistics(*find_game(game).typical_calls(config))


def channel_of(model: LanguageModel) -> ModelCapacity:
    """The limits of a registered model."""
    options = read_options(player_spec(model))
    if options is None:
        return ModelCapacity(True, 1, None, prices_of_model(model))
    a_minute = options.tokens_per_minute if isinstance(options, api_options.ApiOptions) else None
    return ModelCapacity(False, options.in_flight, a_minute, prices_of_model(model))


def habit_of(session: Session, model: LanguageModel, game: str, config: JSON) -> CallStatistics:
    """The averages of a model's past matches of a game, those of its latest round first; else typical ones."""
    if model.kind == "scripted":
        return _NOTHING
    sample = _latest_round(session, model, game) or _any_matches(session, model, game)
    if not sample:
        return typical(game, config)
    mine = GenerationRow.language_model_id == model.id
    row = session.execute(
        select(
            func.count(),
            func.coalesce(func.sum(GenerationRow.prompt_tokens), 0),
            func.coalesce(func.sum(GenerationRow.completion_tokens), 0),
            func.coalesce(func.avg(GenerationRow.latency), 0.0),
            *(func.coalesce(func.sum(column), 0) for column in PARTS_OF_TOKENS),
            server_cost(func.sum),
        ).where(GenerationRow.match_id.in_(sample), mine)
    ).one()
    seats = session.scalar(
        select(func.count()).where(SeatRow.match_id.in_(sample), SeatRow.language_model_id == model.id)
    )
    if not seats or not row[0]:
        return typical(game, config)
    calls, prompt, completion, latency, cached, cache_write, reasoning, cost = row
    return CallStatistics(
        calls / seats,
        int(prompt) / seats,
        int(completion) / seats,
        float(latency),
        len(sample),
        cached_tokens=int(cached) / seats,
        cache_write_tokens=int(cache_write) / seats,
        reasoning_tokens=int(reasoning) / seats,
        cost=None if cost is None else float(cost) / seats,
    )


PARTS_OF_TOKENS = (GenerationRow.cached_tokens, GenerationRow.cache_write_tokens, GenerationRow.reasoning_tokens)


def server_cost(how: Callable[[Any], ColumnElement[Any]], table: Any = GenerationRow) -> ColumnElement[Any]:
    """The sum or mean of the costs that servers reported; NULL if an answered call has no such cost."""
    unsaid = func.count(case((table.error.is_(None) & (func.coalesce(table.cost_source, "") != "server"), 1)))
    return case((unsaid == 0, how(table.cost)))


def _latest_round(session: Session, model: LanguageModel, game: str) -> Sequence[str]:
    latest = (
        select(RoundRow.id)
        .where(RoundRow.game == game, RoundRow.source == "selfplay", RoundRow.calls > 0, RoundRow.finished > 0)
        .where((RoundRow.model_0_id == model.id) | (RoundRow.model_1_id == model.id))
        .order_by(RoundRow.id.desc())
        .limit(1)
    )
    number = session.scalar(latest)
    if number is None:
        return ()
    matches = select(MatchRow.id).where(MatchRow.round_id == number, is_over())
    return session.scalars(matches.order_by(MatchRow.index).limit(SAMPLE)).all()


def _any_matches(session: Session, model: LanguageModel, game: str) -> Sequence[str]:
    played = (
        select(MatchRow.id)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(SeatRow.language_model_id == model.id, MatchRow.game == game, is_over())
    )
    return session.scalars(played.limit(SAMPLE)).all()
