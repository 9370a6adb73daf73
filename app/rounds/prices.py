"""The token prices of rounds, if a model's prices are known: those from when the round began, else today's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.jobs.call_costs import Prices
from app.models import GenerationRow, LanguageModel, MatchRow, RoundRow
from app.players.base import PlayerSpec
from app.registry.prices import PRICES, prices_of_model
from app.rounds import lifecycle

_SAMPLE = 200  # matches of a round that show which of two models uses how many of its tokens


def prices_of_round(session: Session, row: RoundRow) -> Prices | None:
    """The average price of a token of a round, for calls whose cost was not stored.

    None if a model's prices are unknown, and if no model is paid for.
    """
    callers = {model.id: model for model in lifecycle.seated(session, row) if model.kind != "scripted"}
    prices = {number: _stored_prices(row, number) or prices_of_model(model) for number, model in callers.items()}
    known = {number: each for number, each in prices.items() if each is not None}
    if len(known) < len(prices) or all(model.kind != "api" for model in callers.values()):
        return None
    if len(set(known.values())) == 1:
        return next(iter(known.values()))
    return _weighted(_tokens_by_model(session, row), known)


def store_prices(row: RoundRow, models: Sequence[LanguageModel]) -> None:
    """Store current token prices on the row of a round that begins; for one begun earlier, they are unknown."""
    if row.prices is None and not row.calls:
        prices = {str(model.id): prices_of_model(model) for model in models if model.kind == "api"}
        row.prices = {number: list(each) for number, each in prices.items() if each is not None}


def prices_by_model(row: RoundRow, models: Sequence[LanguageModel]) -> dict[int, Prices | None]:
    """The prices of each model of a round, by model id."""
    return {model.id: _stored_prices(row, model.id) or prices_of_model(model) for model in models}


def with_prices(spec: PlayerSpec, prices: Prices | None) -> PlayerSpec:
    """The player of a model behind an API, with the prices from when the round began."""
    if spec.kind != "api" or prices is None:
        return spec
    kept = {name: value for name, value in spec.options.items() if name not in PRICES}
    given = {name: price for name, price in zip(PRICES, prices, strict=True) if price is not None}
    return replace(spec, options={**kept, **given})


def has_current_prices(row: RoundRow, models: Sequence[LanguageModel]) -> bool:
    """Whether a round's cost uses today's price of one of its models, because the one at its time is unknown."""
    return row.unpriced_calls != 0 and any(
        model.kind == "api" and _stored_prices(row, model.id) is None for model in models
    )


def _stored_prices(row: RoundRow, model_id: int) -> Prices | None:
    found = (row.prices or {}).get(str(model_id))
    return None if found is None else Prices(*found)  # type: ignore[arg-type]


def _tokens_by_model(session: Session, row: RoundRow) -> dict[int, tuple[int, int]]:
    """Prompt and completion tokens by model, in the first matches of a round."""
    found = session.execute(
        select(
            GenerationRow.language_model_id,
            func.coalesce(func.sum(GenerationRow.prompt_tokens), 0),
            func.coalesce(func.sum(GenerationRow.completion_tokens), 0),
        )
        .join(MatchRow, MatchRow.id == GenerationRow.match_id)
        .where(MatchRow.round_id == row.id, MatchRow.index < _SAMPLE)
        .group_by(GenerationRow.language_model_id)
    )
    return {each[0]: (each[1] or 0, each[2] or 0) for each in found if each[0] is not None}


def _weighted(tokens: Mapping[int, tuple[int, int]], prices: Mapping[int, Prices]) -> Prices:
    def mean(kind: int) -> float:
        total = sum(tokens.get(number, (0, 0))[kind] for number in prices)
        if not total:
            return sum(_prices_as_pair(each)[kind] for each in prices.values()) / len(prices)
        return (
            sum(_prices_as_pair(each)[kind] * tokens.get(number, (0, 0))[kind] for number, each in prices.items())
            / total
        )

    return Prices(mean(0), mean(1))


def _prices_as_pair(prices: Prices) -> tuple[float, float]:
    return prices.prompt, prices.completion
