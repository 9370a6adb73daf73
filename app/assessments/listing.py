"""Assessments for experimenters: their specs, and the ratings so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.assessments import lifecycle
from app.assessments.figures import ASPECTS, AssessmentFigures, RatedPair, assessment_figures
from app.assessments.job import ASSESSMENT
from app.core.errors import Phrase
from app.core.lists import ListColumn, Listing
from app.games.base import JSON
from app.jobs.listing import CALLS, JobListItem, job_columns, job_figures, job_items
from app.models import AssessedAnswer, Assessment, LanguageModel
from app.registry.listing import model_column, model_name
from app.registry.prices import known_cost, prices_of_model

COUNTS = {  # counts on a page, by their columns
    "failed": Phrase("Answers refused"), "ratings": Phrase("Ratings"), "unread_ratings": Phrase("Unreadable ratings"),
    **CALLS,
}  # fmt: skip


@dataclass(frozen=True)
class AssessmentListItem(JobListItem):
    """An assessment in a list, with the assessed model and the base it is compared with."""

    model: LanguageModel
    base: LanguageModel


class AnswerPair(NamedTuple):
    """Both models' answers to a question, with its place among all, from 0; None for an answer not yet known."""

    place: int
    question: str
    model: AssessedAnswer | None
    base: AssessedAnswer | None


def list_items(session: Session, rows: Sequence[Assessment]) -> list[AssessmentListItem]:
    """Assessments as items of a list."""
    known = _models_of_assessments(session, rows)
    items = job_items(session, ASSESSMENT, rows)
    return [
        AssessmentListItem(**vars(item), model=known[item.row.model_id], base=known[item.row.base_id]) for item in items
    ]


def progress_of(session: Session, rows: Sequence[Assessment]) -> dict[int, JSON]:
    """Each assessment's progress, as figures by name, by number; `at` changes when its page has more to show."""
    known = _models_of_assessments(session, rows)
    return {
        item.row.id: {
            **job_figures(item),
            **{name: getattr(item.row, name) for name in COUNTS},
            "estimated_tokens": item.row.estimated_tokens or None,
            "cost": _cost_of_calls(item.row, known),
        }
        for item in job_items(session, ASSESSMENT, rows)
    }


def answer_pairs(session: Session, row: Assessment, first: int, most: int) -> list[AnswerPair]:
    """The answered questions among `most` from place `first` on, with both answers."""
    table = AssessedAnswer
    chosen = table.assessment_id == row.id, table.question >= first, table.question < first + most
    by_place: dict[int, dict[bool, AssessedAnswer]] = {}
    for each in session.scalars(select(table).where(*chosen, table.text.is_not(None) | table.error.is_not(None))):
        by_place.setdefault(each.question, {})[each.of_base] = each
    return [
        AnswerPair(place, row.questions[place], found.get(False), found.get(True))
        for place, found in sorted(by_place.items())
    ]


def figures_of(session: Session, row: Assessment) -> list[AssessmentFigures]:
    """The figures of the questions with both answers rated so far."""
    done = lifecycle.answers_of(session, row.id, status=lifecycle.DONE)
    by_question: dict[int, dict[bool, AssessedAnswer]] = {}
    for each in done:
        by_question.setdefault(each.question, {})[each.of_base] = each
    pairs = [
        RatedPair(*({aspect: getattr(each[of_base], aspect) for aspect in ASPECTS} for of_base in (False, True)))
        for each in by_question.values()
        if len(each) == len((True, False))
    ]
    return assessment_figures([each["model"] for each in row.raters], pairs)


def _models_of_assessments(session: Session, rows: Sequence[Assessment]) -> dict[int, LanguageModel]:
    """The models of these assessments, by number."""
    numbers = {number for row in rows for number in _models_of(row)}
    return {each.id: each for each in session.scalars(select(LanguageModel).where(LanguageModel.id.in_(numbers)))}


def _cost_of_calls(row: Assessment, models: Mapping[int, LanguageModel]) -> float | None:
    """The cost of its calls in US dollars; None if unknown."""
    return known_cost(row, priced=all(prices_of_model(models[number]) is not None for number in _models_of(row)))


def _models_of(row: Assessment) -> list[int]:
    return [row.model_id, row.base_id, *(each["model_id"] for each in row.raters)]


LIST: Listing[Assessment] = Listing(
    name=ASSESSMENT.plural,
    table=Assessment,
    columns=job_columns(
        ASSESSMENT,
        model_column("model", Phrase("Model"), Assessment.model_id),
        model_column("base", Phrase("Compared with"), Assessment.base_id),
        ListColumn("raters", Phrase("Raters"), lambda each: [rater["model"] for rater in each.row.raters]),
        title=Phrase("Assessment"),
        done=Phrase("Answers rated"),
        name=lambda each: f"{each.model.name} beside {each.base.name}",
        sort=model_name(Assessment.model_id),
        sort_done=Assessment.answers,
    ),
    items=list_items,
)
