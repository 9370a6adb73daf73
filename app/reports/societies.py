"""The report of a society: how its critics and observers rated drafts and revisions, by iteration."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.analysis.wording import in_words, signed_in_words
from app.core.csv_tables import to_csv
from app.core.errors import Phrase
from app.games.metrics import POINTS
from app.models import Society
from app.reports.common_sections import key_difference, nothing_yet, whole_report
from app.reports.origins import (
    NONE,
    Origins,
    ReportContext,
    as_json,
    limits_of,
    origins_of,
    prompts_and_configs,
    seeds_sentence,
    settings_table,
)
from app.reports.report import FoldedText, Report, ReportFigure, ReportSection, ReportTable
from app.society.charts import society_charts
from app.society.config import SETTINGS, SocietyConfig
from app.society.job import SOCIETY
from app.society.statistics import ASPECTS, ITERATION_COLUMNS, IterationFigures, iteration_figures
from app.society.store import read_ratings


def society_report(session: Session, number: int, context: ReportContext) -> Report:
    """The report of a society. Raises NotFound, and Conflict before the first rating."""
    row = SOCIETY.get(session, number)
    figures = iteration_figures(read_ratings(session, number))
    charts = society_charts(str(number), figures, SocietyConfig.model_validate(row.config).iterations)
    if not charts:
        expected = Phrase("one with an answer that was rated")
        raise nothing_yet(SOCIETY, number, expected, Phrase("wait for its first iteration"))
    origins = origins_of(session, {SOCIETY.name: [number]})
    whole = figures[-1]
    config = SocietyConfig.model_validate(row.config)
    captions = (
        f"{charts[0].described.sentence} Bands are 95 % intervals; drafts are dashed.",
        f"{charts[1].described.sentence} Drafts are circles, revisions squares.",
    )
    state = SOCIETY.state_of(session, row)
    return whole_report(
        session, context, origins,
        name=f"society-{number}",
        title=f"Society {row.name}",
        about=f"Report of society {number}, {state}: {whole.interactions} interactions of {config.agents} agents in"
        f" {len(figures) - 1} of {config.iterations} iterations, {SETTINGS[config.setting]}.",
        finding=_society_finding(whole),
        more="Both are means of paired differences, revision minus draft, on a scale from 1 to 7.",
        key_figures=[
            key_difference(f"{aspect.capitalize()}, revision minus draft", getattr(whole, aspect).change, POINTS)
            for aspect in ASPECTS
        ],
        results=[
            ReportSection(
                "result", "Result",
                figures=[ReportFigure(*each) for each in zip(charts, captions, strict=True)],
                tables=[_ratings_table(figures)],
            ),
        ],
        methods=[*_society_methods(row, config), seeds_sentence(origins)],
        tables=[settings_table("settings", "Settings of the society.", config)],
        versions=[("Prompts of the society", row.template, NONE), ("Embedder", row.embedder or "none", NONE)],
        # The questions are in the society's export.
        texts=[
            *prompts_and_configs(session, origins),
            FoldedText("Members", as_json({"agents": row.agents, "observers": row.observers})),
            FoldedText("The society as JSON", as_json(row.spec or row.config)),
        ],
        limits=_society_limits(whole, config, origins),
        commands=_commands(row),
    )  # fmt: skip


def _society_finding(whole: IterationFigures) -> str:
    alignment, engagement = whole.alignment.change, whole.engagement.change
    return (
        f"Revising changes alignment by {signed_in_words(alignment, POINTS)} and"
        f" engagement by {signed_in_words(engagement, POINTS)}."
    )


def _ratings_table(figures: Sequence[IterationFigures]) -> ReportTable:
    head = ("Iteration", "Interactions", *(f"{aspect.capitalize()}: change" for aspect in ASPECTS))
    rows = [
        (
            "all of them" if each.iteration is None else str(each.iteration + 1),
            str(each.interactions),
            *(in_words(getattr(each, aspect).change._asdict(), POINTS) for aspect in ASPECTS),
        )
        for each in figures
    ]
    caption = "What revising changed by iteration, in points of the scale; of all iterations agents are resampled."
    return ReportTable("iterations", caption, head, rows, b"".join(to_csv(ITERATION_COLUMNS, figures)))


def _society_methods(row: Society, config: SocietyConfig) -> list[str]:
    if row.imported:
        return ["The society was run elsewhere and imported; its files do not say how its calls were made."]
    members = ", ".join(f"{each['model']} (share {each['share']:g})" for each in row.agents)
    observers = ", ".join(each["model"] for each in row.observers) or "none"
    return [
        (
            f"{config.agents} agents on a {config.size} by {config.size} grid, played by {members}, answer questions"
            f" from {row.question_source}; first memories are from {row.prior_source}. In each iteration every agent"
            f" drafts an answer, up to {config.critics} neighbours rate and criticise it, and the agent revises it."
            f" Observers ({observers}) rate draft and revision for alignment and engagement from 1 to 7."
        ),
        (
            "A rating that held no number from 1 to 7 is in no mean. Intervals are percentiles of 1,000 bootstrap"
            " resamples: of interactions within an iteration, of agents over all of them."
        ),
    ]


def _society_limits(whole: IterationFigures, config: SocietyConfig, origins: Origins) -> list[str]:
    planned = config.agents * config.iterations
    points = limits_of(origins)
    if whole.interactions < planned:
        points.insert(0, f"{planned - whole.interactions} of {planned} planned interactions are in no figure.")
    if whole.alignment.change.no_interval:
        points.append(f"There is no interval of {whole.alignment.change.no_interval}.")
    points.append("Agents of one society see each other's answers: two societies with other seeds may differ by more.")
    return points


def _commands(row: Society) -> list[str]:
    if row.imported:
        return [f"flask society export {row.id} --help", f"flask report --society {row.id}"]
    return [
        f"flask society show {row.id} --json    # its spec, for society.json",
        "flask society run --spec society.json",
        f"flask report --society {row.id}",
    ]
