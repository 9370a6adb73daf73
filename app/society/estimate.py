"""Estimates of a society before it starts: calls, tokens, money, time. From past calls, or typical ones.

`estimate` computes; `call_statistics` reads what is known about a model from the database.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.jobs.call_costs import TokenCounts, cost_of
from app.models import GenerationRow, LanguageModel
from app.rounds.estimate import (
    PARTS_OF_TOKENS,
    ModelCapacity,
    TokenStatistics,
    channel_of,
    server_cost,
    tokens_and_cost,
)
from app.society import world
from app.society.config import SocietyConfig
from app.society.embedders import BATCH, registered

SAMPLE = 500  # past calls from which a model's averages are taken
STEPS = 4  # consecutive calls of an interaction: draft, critique, revision, rating
RATINGS = 4  # by each observer of an interaction: alignment and engagement, before and after
SCRIPTED_A_SECOND = 400.0  # calls that one process makes and stores without waiting for a model
_CHARACTERS_A_TOKEN = 4  # in a text to be embedded, roughly
_TYPICAL_PROMPT, _TYPICAL_ANSWER, _TYPICAL_LATENCY = 300.0, 110.0, 1.5  # tokens, tokens, seconds


@dataclass(frozen=True, slots=True)
class ChatStatistics(TokenStatistics):
    """The averages of a model's call. `calls` is the number of past calls behind them; 0: typical figures.

    Cache tokens are included in the prompt tokens, reasoning tokens in the completion tokens. `cost` is in USD, if the
    server reported the cost of every call.
    """

    prompt_tokens: float
    completion_tokens: float
    latency: float  # seconds
    calls: int = 0
    cached_tokens: float = 0
    cache_write_tokens: float = 0
    reasoning_tokens: float = 0
    cost: float | None = None


class CallTotals(NamedTuple):
    """Totals of calls. `cost` is in USD and None where a price is unknown; `basis`: past calls by model."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    basis: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SocietyEstimate:
    """The expected totals. `cost` is in USD and None where a price is unknown; `basis`: past calls by model."""

    interactions: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float
    basis: Mapping[str, int]
    embedding_cost: float | None = 0.0  # part of the cost; its calls and tokens are included above


@dataclass(frozen=True, slots=True)
class EmbeddingEstimate:
    """The expected load of an embedder behind an API: the number of calls, and the tokens of all texts."""

    calls: int
    tokens: int


def embedding_of(config: SocietyConfig, questions: Sequence[str], first: Collection[str]) -> EmbeddingEstimate:
    """The embedding load of a society with these questions, whose agents remember the `first` ones initially.

    Each question is embedded once: those of the first memories together, others before the iteration that asks them.
    """
    if not config.recall:
        return EmbeddingEstimate(0, 0)
    known, calls, characters = set(first), math.ceil(len(first) / BATCH), sum(map(len, first))
    for iteration in range(config.iterations):
        places = {world.question_of(config, iteration, agent, len(questions)) for agent in range(config.agents)}
        new = {questions[place] for place in places} - known
        if not new and len(known.intersection(questions)) == len(set(questions)):
            break
        known |= new
        calls += math.ceil(len(new) / BATCH)
        characters += sum(map(len, new))
    return EmbeddingEstimate(calls, round(characters / _CHARACTERS_A_TOKEN))


def calls_by_model(
    config: SocietyConfig, agents: Sequence[tuple[str, float]], observers: Sequence[str]
) -> Mapping[str, float]:
    """The number of calls of each model: agents in proportion to their shares, observers equally."""
    critics = sum(len(world.critics_of(config, 0, agent)) for agent in range(config.agents))
    of_agents = config.iterations * (2 * config.agents + critics)
    total = sum(share for _, share in agents)
    calls: defaultdict[str, float] = defaultdict(float)
    for name, share in agents:
        calls[name] += of_agents * share / total
    for name in observers:
        calls[name] += RATINGS * config.iterations * config.agents
    return calls


def totals_of_calls(
    calls: Mapping[str, float], habits: Mapping[str, ChatStatistics], capacities: Mapping[str, ModelCapacity]
) -> tuple[CallTotals, Mapping[str, float]]:
    """The totals of so many calls of each model, and the tokens of each that is not scripted."""
    callers = [name for name in calls if not capacities[name].scripted]
    tokens, cost = tokens_and_cost({name: calls[name] for name in callers}, habits, capacities)
    totals = CallTotals(
        calls=round(sum(calls.values())),
        prompt_tokens=round(sum(each.prompt for each in tokens.values())),
        completion_tokens=round(sum(each.completion for each in tokens.values())),
        cost=cost,
        basis={name: habits[name].calls for name in callers},
    )
    return totals, {name: each.prompt + each.completion for name, each in tokens.items()}


def estimate(
    config: SocietyConfig,
    calls: Mapping[str, float],
    habits: Mapping[str, ChatStatistics],
    capacities: Mapping[str, ModelCapacity],
) -> SocietyEstimate:
    """The estimate of a society with that many calls of each model. Habits and capacities are by model name."""
    totals, tokens = totals_of_calls(calls, habits, capacities)
    return SocietyEstimate(
        interactions=config.iterations * config.agents,
        seconds=_estimated_seconds(config, calls, habits, capacities, tokens),
        **totals._asdict(),
    )


def _estimated_seconds(
    config: SocietyConfig,
    calls: Mapping[str, float],
    habits: Mapping[str, ChatStatistics],
    capacities: Mapping[str, ModelCapacity],
    tokens: Mapping[str, float],
) -> float:
    """The longest of the lower bounds: each model's calls divided by its concurrent requests and tokens a minute, the
    steps of an interaction in sequence for each iteration, and the work of this process.
    """
    limits = [sum(calls.values()) / SCRIPTED_A_SECOND]
    for name, used in tokens.items():
        latency = habits[name].latency
        limits += [calls[name] * latency / capacities[name].at_once, config.iterations * STEPS * latency]
        if a_minute := capacities[name].tokens_a_minute:
            limits.append(60 * used / a_minute)
    return max(limits)


# ---- What is known of a model ---------------------------------------------------


def estimate_for(
    session: Session,
    config: SocietyConfig,
    agents: Sequence[tuple[LanguageModel, float]],
    observers: Sequence[LanguageModel],
    embedding: tuple[str, EmbeddingEstimate],
) -> SocietyEstimate:
    """The estimate of a society of registered models, with the named embedder."""
    models = {model.name: model for model in (*(model for model, _ in agents), *observers)}
    calls = calls_by_model(config, [(model.name, share) for model, share in agents], [each.name for each in observers])
    habits = {name: call_statistics(session, model, config) for name, model in models.items()}
    found = estimate(config, calls, habits, {name: channel_of(model) for name, model in models.items()})
    name, asked = embedding
    if not registered.is_called(name):
        return found
    prices = registered.prices_of(session, name)
    embedding_cost = None if prices is None else cost_of(prices, TokenCounts(asked.tokens))
    return replace(
        found,
        calls=found.calls + asked.calls,
        prompt_tokens=found.prompt_tokens + asked.tokens,
        cost=None if found.cost is None or embedding_cost is None else found.cost + embedding_cost,
        embedding_cost=embedding_cost,
    )


def call_statistics(session: Session, model: LanguageModel, config: SocietyConfig) -> ChatStatistics:
    """The averages of a model's latest calls in societies; without any, typical ones."""
    latest = (
        select(
            GenerationRow.prompt_tokens,
            GenerationRow.completion_tokens,
            GenerationRow.latency,
            GenerationRow.cost,
            GenerationRow.cost_source,
            GenerationRow.error,
            *PARTS_OF_TOKENS,
        )
        .where(
            GenerationRow.language_model_id == model.id,
            GenerationRow.interaction_id.is_not(None),
            GenerationRow.error.is_(None),
        )
        .order_by(GenerationRow.id.desc())
        .limit(SAMPLE)
        .subquery()
    )
    means = (func.avg(latest.c.prompt_tokens), func.avg(latest.c.completion_tokens), func.avg(latest.c.latency))
    parts = [func.avg(func.coalesce(latest.c[column.key], 0)) for column in PARTS_OF_TOKENS]
    figures = select(func.count(), *means, *parts, server_cost(func.avg, latest.c)).select_from(latest)
    count, prompt, completion, latency, cached, cache_write, reasoning, cost = session.execute(figures).one()
    if not count or prompt is None or completion is None:
        return ChatStatistics(_TYPICAL_PROMPT, min(_TYPICAL_ANSWER, config.max_tokens), _TYPICAL_LATENCY)
    return ChatStatistics(
        float(prompt),
        float(completion),
        float(latency),
        count,
        cached_tokens=float(cached),
        cache_write_tokens=float(cache_write),
        reasoning_tokens=float(reasoning),
        cost=None if cost is None else float(cost),
    )
