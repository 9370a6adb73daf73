"""What the whole installation has spent on calls of models in a day or a month, and its budget for that."""

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Phrase
from app.core.extensions import reading
from app.jobs.spending import Spent, dollars, spent_on
from app.models import GenerationRow, LanguageModel
from app.registry.prices import prices_of_model


def spending_limit(session: Session, settings: Settings) -> str | None:
    """Why no further call of a paid model is to begin, in a line for people; None while there is no such reason."""
    most, now = settings.SPENDING_LIMIT_USD, datetime.now(UTC)
    if not most:
        return None
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = today.replace(day=1) if settings.SPENDING_PERIOD == "month" else today
    spent = spent_since(session, since)
    if spent < most:
        return None
    return (
        f"budget of {dollars(most)} a {settings.SPENDING_PERIOD} of this installation reached: {dollars(spent)} spent"
        f" since {since:%Y-%m-%d}, UTC; raise SPENDING_LIMIT_USD or wait for the next {settings.SPENDING_PERIOD}"
    )


def limit_reader(database: Engine, settings: Settings) -> Callable[[], str | None]:
    """What reads `spending_limit` by a session of its own; it reads nothing where there is no such budget."""

    def read() -> str | None:
        if not settings.SPENDING_LIMIT_USD:
            return None
        with reading(database) as session:
            return spending_limit(session, settings)

    return read


def check_spending(session: Session, settings: Settings, model: LanguageModel) -> None:
    """Raises Conflict for a match with a model behind an API while the installation's budget is used up."""
    if model.kind == "api" and spending_limit(session, settings) is not None:
        raise Conflict(
            "opponent",
            expected=Phrase("a partner that costs nothing, as the budget for models is used up for now"),
            got=model.label,
        )


def spent_since(session: Session, moment: datetime) -> float:
    """What all calls since then have cost in US dollars, by the prices that the models' rows have today."""
    return spent_on_calls(session, GenerationRow.id >= _first_since(session, moment)).usd


def spent_on_calls(session: Session, *which: ColumnElement[bool]) -> Spent:
    """What such calls have come to, by the prices that the models' rows have today."""
    table = GenerationRow
    sums = (
        select(table.language_model_id, func.sum(table.prompt_tokens), func.sum(table.completion_tokens))
        .where(*which, table.language_model_id.is_not(None))
        .group_by(table.language_model_id)
    )
    return sum(
        (
            spent_on(prices_of_model(session.get_one(LanguageModel, number)), prompt, completion)
            for number, prompt, completion in session.execute(sums)
        ),
        Spent(),
    )


def _first_since(session: Session, moment: datetime) -> int:
    """The number of the first call since then: numbers rise with time, of which there is no index."""
    table = GenerationRow
    low = session.scalar(select(func.min(table.id))) or 0
    high = (session.scalar(select(func.max(table.id))) or 0) + 1
    while low < high:
        middle = (low + high) // 2
        at = session.scalar(select(table.at).where(table.id >= middle).order_by(table.id).limit(1))
        low, high = (middle + 1, high) if at is not None and at < moment else (low, middle)
    return low
