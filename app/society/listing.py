"""Societies for experimenters: a page of them, and the figures of one society's interactions."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.lists import Labelled, ListColumn, Listing
from app.games.base import JSON
from app.jobs.listing import CALLS, job_columns, job_figures, job_items
from app.models import Dataset, LanguageModel, Society, SocietyInteraction
from app.registry.prices import known_cost, prices_of_model
from app.society import store
from app.society.config import SETTINGS
from app.society.embedders import registered
from app.society.job import SOCIETY

_FAILURES = 5  # interactions' failures shown on a page
COUNTS = {  # shown on a page, by column
    "failed": Phrase("Failed"), "ratings": Phrase("Ratings"), "unread_ratings": Phrase("Unreadable ratings"), **CALLS,
}  # fmt: skip


class RecallCount(NamedTuple):
    """The number of drafts that recalled a question, and of all drafts."""

    recalls: int
    drafts: int


class IterationMeans(NamedTuple):
    """The means of an iteration's finished interactions, of ratings from 1 to 7.

    None if no rating could be parsed.
    """

    iteration: int
    interactions: int
    alignment_before: float | None
    alignment_after: float | None
    engagement_before: float | None
    engagement_after: float | None


def means_by_iteration(session: Session, society_id: int) -> list[IterationMeans]:
    """The means of each iteration that has a completed interaction, in order."""
    table = SocietyInteraction
    columns = (table.alignment_before, table.alignment_after, table.engagement_before, table.engagement_after)
    found = (
        select(table.iteration, func.count(), *(func.avg(column) for column in columns))
        .where(table.society_id == society_id, table.status == store.DONE)
        .group_by(table.iteration)
        .order_by(table.iteration)
    )
    return [IterationMeans(*row) for row in session.execute(found)]


def recalls_of(session: Session, society_id: int) -> RecallCount:
    """How many drafts of a society recalled a similar question, to show if the distance is never reached."""
    table = SocietyInteraction
    counted = select(func.count(table.recall), func.count(table.draft)).where(table.society_id == society_id)
    return RecallCount(*session.execute(counted).one())


def figures_of(session: Session, rows: Sequence[Society]) -> dict[int, JSON]:
    """The progress of each society by number, as figures by name; `at` changes with each finished iteration."""
    unpriced = _unpriced(session, rows)
    return {
        item.row.id: {
            **job_figures(item),
            "iteration": item.row.iteration,
            # Files do not tell these for an imported one.
            **{name: None if item.row.imported else getattr(item.row, name) for name in COUNTS},
            "estimated_tokens": item.row.estimated_tokens or None,
            "cost": _cost_of_society(session, item.row, unpriced),
            "at": f"{item.state} {item.row.iteration}",
        }
        for item in job_items(session, SOCIETY, rows)
    }


def last_failures(session: Session, society_id: int) -> list[SocietyInteraction]:
    """The most recent interactions in which a model refused to answer."""
    table = SocietyInteraction
    failed = select(table).where(table.society_id == society_id, table.status == store.FAILED)
    return [*session.scalars(failed.order_by(table.iteration.desc(), table.agent).limit(_FAILURES))]


def datasets_of(session: Session, society_id: int) -> list[Dataset]:
    """The datasets built from a society, latest first."""
    of_society = Dataset.spec["society"]["society_id"].as_integer() == society_id
    cut = select(Dataset).where(of_society, Dataset.complete)
    return [*session.scalars(cut.order_by(Dataset.id.desc()))]


def _unpriced(session: Session, rows: Sequence[Society]) -> set[int]:
    """The models of these societies whose token prices are unknown."""
    numbers = {number for row in rows for number in _models_of(row)}
    models = session.scalars(select(LanguageModel).where(LanguageModel.id.in_(numbers)))
    return {model.id for model in models if prices_of_model(model) is None}


def _models_of(row: Society) -> set[int]:
    """The registered models of a society; an imported one may have others."""
    return {each["model_id"] for each in (*row.agents, *row.observers) if each["model_id"] is not None}


def _cost_of_society(session: Session, row: Society, unpriced: set[int]) -> float | None:
    """The cost of a society's calls in US dollars, including its embedder's; None if unknown."""
    if row.imported:
        return None
    embeds_unpriced = bool(row.config["recall"]) and registered.prices_of(session, row.embedder) is None
    return known_cost(row, priced=not (embeds_unpriced or _models_of(row) & unpriced))


def _labelled_setting(name: str) -> Labelled:
    return Labelled(name, Phrase(SETTINGS.get(name, name)))


LIST: Listing[Society] = Listing(
    name=SOCIETY.plural,
    table=Society,
    columns=job_columns(
        SOCIETY,
        ListColumn(
            "agents",
            Phrase("Agents"),
            lambda each: each.row.config["size"] ** 2,
            sort=Society.config["size"].as_integer(),
            type="number",
            notes=lambda each: [", ".join(agent["model"] for agent in each.row.agents)],
        ),
        ListColumn(
            "setting",
            Phrase("Setting"),
            lambda each: _labelled_setting(each.row.config["setting"]),
            sort=Society.config["setting"].as_string(),
        ),
        ListColumn(
            "observers",
            Phrase("Observers"),
            lambda each: [observer["model"] for observer in each.row.observers],
            sort=Society.observers[0]["model"].as_string(),
        ),
        title=Phrase("Society"),
        done=Phrase("Finished interactions"),
        sort_done=Society.interactions,
        notes=lambda each: [Phrase("imported")] if each.row.imported else [],
    ),
    items=lambda session, rows: job_items(session, SOCIETY, rows),
)
