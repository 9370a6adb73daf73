"""The report of an alignment: its model compared with the one before, by raters and in the same society."""

from collections.abc import Sequence
from shlex import quote

from sqlalchemy.orm import Session

from app.alignments.comparison import SocietyDifference
from app.alignments.job import ALIGNMENT
from app.alignments.listing import AlignmentListItem, figures_of, jobs_of, list_items, society_figures
from app.alignments.spec import AlignmentSpec
from app.analysis.wording import in_words, number, signed_in_words
from app.assessments.figures import COLUMNS, AssessmentFigures
from app.core.csv_tables import to_csv
from app.core.errors import Phrase
from app.games.metrics import POINTS
from app.reports.common_sections import commands_of_recipe, key_difference, nothing_yet, whole_report
from app.reports.interval_charts import interval_chart
from app.reports.origins import (
    NONE,
    Origins,
    ReportContext,
    as_json,
    limits_of,
    origins_of_steps,
    prompts_and_configs,
    seeds_sentence,
    settings_table,
)
from app.reports.report import FoldedText, Report, ReportFigure, ReportSection, ReportTable, plain_table

_UNIT = "points from 1 to 7"


def alignment_report(session: Session, number: int, context: ReportContext) -> Report:
    """The report of an alignment. Raises NotFound, and Conflict before an answer of both models was rated."""
    row = ALIGNMENT.get(session, number)
    [item] = list_items(session, [row])
    rated = [each for each in figures_of(session, item) if each.difference.value is not None]
    societies = society_figures(session, item)
    if not rated and not societies:
        expected = Phrase("one with a second society or an assessment")
        raise nothing_yet(ALIGNMENT, number, expected, Phrase("wait for its last steps"))
    origins = origins_of_steps(session, ALIGNMENT.steps_of(session, number), [row.base_id])
    spec, state = AlignmentSpec.of_json(row.spec), ALIGNMENT.state_of(session, row)
    made = item.model.name if item.model else "no model yet"
    return whole_report(
        session, context, origins,
        name=f"alignment-{number}",
        title=f"Alignment {row.name}",
        about=f"Report of alignment {number}, {state}: {made}, from {item.base.name}.",
        finding=_alignment_finding(rated, societies),
        more="Differences are of the same questions, on a scale from 1 to 7.",
        key_figures=[
            key_difference(f"{each.aspect.capitalize()}, {_rater(each)}", each.difference, POINTS)
            for each in rated[:6]
        ],
        results=[
            ReportSection("result", "Result", figures=_rated_figures(rated), tables=_rated_tables(rated)),
            *(_society_section(who, found) for who, found in societies),
        ],
        methods=[*_alignment_methods(item, spec), seeds_sentence(origins, f"alignment: {spec.seed}")],
        tables=[_steps_table(session, item), settings_table("settings", "What was asked for.", spec)],
        texts=[*prompts_and_configs(session, origins), FoldedText("The alignment as JSON", as_json(row.spec))],
        limits=_alignment_limits(rated, origins),
        commands=commands_of_recipe(ALIGNMENT, number, f"alignment-{number}", f"{quote(row.name)}/*.yaml"),
        before_commands=["The first command writes the alignment as a recipe with its questions and first memories."],
    )  # fmt: skip


def _rater(each: AssessmentFigures) -> str:
    return each.rater or "all raters"


def _alignment_finding(
    rated: Sequence[AssessmentFigures], societies: Sequence[tuple[str, Sequence[SocietyDifference]]]
) -> str:
    if rated:
        first = rated[0]
        difference = first.difference
        return (
            f"On held-out questions, raters put the {first.aspect} of the model at"
            f" {number(first.model.value, POINTS)} and that of the one before at {number(first.base.value, POINTS)}:"
            f" {signed_in_words(difference, POINTS)}."
        )
    first_pair = societies[0][1][0]
    return (
        f"In the same society, {first_pair.aspect} of {first_pair.of} changes by"
        f" {signed_in_words(first_pair.difference, POINTS)}."
    )


def _rated_figures(rated: Sequence[AssessmentFigures]) -> list[ReportFigure]:
    if not rated:
        return []
    rows = [(f"{each.aspect}, {_rater(each)}", each.difference) for each in rated]
    chart = interval_chart(
        "assessment", "Ratings: model minus the one before", "Difference of ratings", _UNIT, rows, "Rated", 0
    )
    caption = (
        "Paired differences of ratings, the model minus the one before, over held-out questions; lines are 95 %"
        " intervals, the dashed line is no difference."
    )
    return [ReportFigure(chart, caption, has_table=True)]


def _rated_tables(rated: Sequence[AssessmentFigures]) -> list[ReportTable]:
    if not rated:
        return []
    head = ("Aspect", "Rater", "Model", "Before", "Difference", "Better", "Worse", "Questions")
    rows = [
        (
            each.aspect, _rater(each), number(each.model.value, POINTS), number(each.base.value, POINTS),
            signed_in_words(each.difference, POINTS), str(each.better), str(each.worse), str(each.difference.n),
        )
        for each in rated
    ]  # fmt: skip
    caption = "Mean ratings of both models, and their paired difference with its 95 % interval."
    return [ReportTable("ratings", caption, head, rows, b"".join(to_csv(COLUMNS, rated)))]


def _society_section(who: str, found: Sequence[SocietyDifference]) -> ReportSection:
    of = "of the model that learns" if who == "learner" else "of all agents"
    rows = [(f"{each.aspect}, {each.of}", each.difference) for each in found]
    chart = interval_chart(
        f"societies-{who}",
        f"The second society minus the first, {of}",
        "Difference of ratings",
        _UNIT,
        rows,
        "Rated",
        0,
    )
    table = plain_table(
        f"societies-{who}-means", f"Mean ratings in both societies {of}, over the same questions.",
        ("Aspect", "Of", "First society", "Second society", "Difference"),
        [
            (
                each.aspect, each.of, in_words(each.first._asdict(), POINTS), in_words(each.last._asdict(), POINTS),
                signed_in_words(each.difference, POINTS),
            )
            for each in found
        ],
    )  # fmt: skip
    caption = (
        f"Both societies have the same questions and places; {of}. Agents are resampled; lines are 95 % intervals."
    )
    return ReportSection(
        f"society-{who}",
        f"The same society again, {of}",
        figures=[ReportFigure(chart, caption, has_table=True)],
        tables=[table],
    )


def _alignment_methods(item: AlignmentListItem, spec: AlignmentSpec) -> list[str]:
    taught = "The base is first trained on demonstrations. " if spec.demonstrations is not None else ""
    sources = {name: item.row.material[name][0] for name in ("questions", "held_out", "priors")}
    return [
        (
            f"{taught}The model lives in a society of agents that answer, criticise and revise; rows are cut from that"
            " society, the model is trained on them, lives in the same society again, and is compared with the one"
            " before on held-out questions, which raters rate without knowing whose answer it is."
        ),
        f"Questions: {sources['questions']}; held out: {sources['held_out']}; first memories: {sources['priors']}.",
        (
            "Differences are paired by question; intervals are percentiles of 1,000 bootstrap resamples of questions,"
            " and of agents between societies."
        ),
    ]


def _steps_table(session: Session, item: AlignmentListItem) -> ReportTable:
    [jobs] = jobs_of(session, [item])
    rows = [
        (
            job.part,
            job.kind,
            NONE if job.number is None else str(job.number),
            job.status or "not begun",
            job.made or NONE,
        )
        for job in jobs
    ]
    return plain_table("steps", "The steps of the alignment.", ("Step", "Job", "Number", "Status", "Model"), rows)


def _alignment_limits(rated: Sequence[AssessmentFigures], origins: Origins) -> list[str]:
    points = limits_of(origins)
    if not rated:
        points.insert(0, "The assessment on held-out questions is not there yet.")
    left_out = sum(row.left_out for row in origins.assessments)
    if left_out:
        points.append(f"{left_out} questions were left out, as one of the models was trained on them.")
    if any(each.difference.no_interval for each in rated):
        points.append("Figures without an interval are of fewer than 10 questions.")
    return points
