"""The page of an assessment: its models, raters and questions, and the results of the ratings."""

from app.assessments.figures import COLUMNS
from app.assessments.job import ASSESSMENT
from app.assessments.listing import COUNTS, AssessmentListItem, figures_of, progress_of
from app.core.errors import Phrase
from app.core.lists import Difference, ListColumn, Measured, Reference
from app.jobs.page import ASKED, JobPage, JobTable, Section, fact, json_fact
from app.models import Assessment
from app.registry.listing import model_cell


def _mean_rating_column(name: str, title: str) -> ListColumn:
    return fact(name, title, lambda each: Measured("rating", name, getattr(each, name)), numeric=True)


def _raters(item: AssessmentListItem) -> list[Reference]:
    return [Reference("model", each["model_id"], each["model"]) for each in item.row.raters]


_ENDS = ("_low", "_high", "no_interval")
FIGURES = JobTable(
    "figures",
    "Mean ratings, and the paired difference",
    [
        fact("aspect", "Rated"),
        fact("rater", "By", none=Phrase("all raters")),
        _mean_rating_column("model", "Model"),
        _mean_rating_column("base", "Base"),
        fact("difference", "Difference", lambda each: Difference(each.difference)),
        fact("questions", "Questions", lambda each: each.difference.n, numeric=True),
        fact("better", "Better", numeric=True),
        fact("worse", "Worse", numeric=True),
        *(json_fact(each.name, each.read) for each in COLUMNS if each.name.endswith(_ENDS)),
    ],
    lines=lambda session, items: [figures_of(session, each.row) for each in items],
)
_ASKED = (
    fact("model", "Model", lambda each: model_cell(each.model)),
    fact("base", "Base", lambda each: model_cell(each.base)),
    fact("raters", "Raters", _raters),
    fact("question_source", "Questions"),
    fact("questions", "Questions asked", lambda each: each.row.asked),
    fact("left_out", "Left out, as a model was trained on them"),
    fact("learnt_from", "Data searched", none=Phrase("no training data of either is here")),
    fact("sampling", "Sampling", none=Phrase("each model’s own")),
    fact("seed", "Seed", digits="0"),
)
_HINT = Phrase(
    "An unreadable rating held no number from 1 to 7; a question with one, or with an answer that a model refused, is "
    "in none of that rater’s pairs."
)


def _assessment_lead(item: AssessmentListItem) -> list[Phrase]:
    model, base = model_cell(item.model), model_cell(item.base)
    return [
        Phrase("%(model)s against %(base)s: both answer the same questions, on which neither was trained here.",
               model=model, base=base)
    ]  # fmt: skip


PAGE: JobPage[Assessment] = JobPage(
    kind=ASSESSMENT,
    lead=_assessment_lead,
    like=lambda _each: True,
    progress=Phrase("%(done)s of %(all)s answers are rated"),
    figures=progress_of,
    sections=[
        Section("result", "Result", table=FIGURES, fragment="assessment-result.html", alone=True),
        Section("counted", "Calls and ratings", counts=COUNTS, hint=_HINT),
        Section(ASKED, "What was asked for", _ASKED, beside=True),
    ],
)
