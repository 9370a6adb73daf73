"""The report of a campaign: its models by iteration, and the last one's gain over the base."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.gain import mean_difference
from app.analysis.reading import matches_of
from app.analysis.wording import beside, heading, in_words, number
from app.campaigns.iterations import IterationResult
from app.campaigns.job import CAMPAIGN
from app.campaigns.lifecycle import spec_of
from app.campaigns.listing import figure_of
from app.campaigns.spec import CampaignSpec
from app.core.errors import Phrase
from app.games import find_game, metrics_of, partner_weight_of
from app.games.metrics import AS_PLAYED, Metric, Use
from app.games.rewards import NO_REWARDS
from app.models import Campaign
from app.reports.campaign_control import (
    CampaignControl,
    arm_of,
    control_figures,
    control_finding,
    control_settings,
    evaluated_iterations,
    read_control,
)
from app.reports.common_sections import commands_of_recipe, key_difference, key_figure, nothing_yet, whole_report
from app.reports.gains import gain_section, gains_of
from app.reports.origins import (
    NONE,
    Origins,
    ReportContext,
    as_json,
    limits_of,
    origins_of_steps,
    prompts_and_configs,
    rounds_table,
    seeds_sentence,
    settings_table,
)
from app.reports.partners import partners_section
from app.reports.report import FoldedText, KeyFigure, Report, ReportFigure, ReportSection, ReportTable, plain_table

_CONTROL = (
    "The control is another campaign, evaluated on the same matches. It differs in the settings of the table below;"
    " what the campaign has over it is taken match by match."
)
_CONTROL_AGAIN = (
    "The control is run after the campaign, in the same way. Each run has a report of its own; the difference between"
    " their final models is in neither."
)


class _Gain(NamedTuple):
    """The headline figure of the base and of the latest model, and their difference on the same matches."""

    metric: Metric
    first: Figure
    last: Figure
    difference: Figure | None


def campaign_report(session: Session, number: int, context: ReportContext) -> Report:
    """The report of a campaign; the control is another one. Raises NotFound, and Conflict before the base was evaluated
    and for a control that was not evaluated on the same matches.
    """
    row = CAMPAIGN.get(session, number)
    found = evaluated_iterations(session, number)
    chart = figure_of(session, number)
    if chart is None:
        expected = Phrase("one whose base was evaluated")
        raise nothing_yet(CAMPAIGN, number, expected, Phrase("wait for its first evaluation"))
    control = None if context.control is None else read_control(session, row, found, context.control)
    campaigns = {each.id: each for each in (row, *([control.row] if control else []))}
    steps = [step for each in campaigns for step in CAMPAIGN.steps_of(session, each)]
    origins = origins_of_steps(session, steps, [each.base_id for each in campaigns.values()])
    gain, spec = _gain(session, row, found), spec_of(row.spec)
    game = find_game(row.game).title
    figure_caption = (
        f"{chart.described.sentence} Each point is a model, evaluated on {spec.evaluation} matches; lines are 95 %"
        " intervals. Lines of a panel differ in their dashes and in the shape of their points."
    )
    finding, more, key_figures = _result(row, found, gain)
    state = CAMPAIGN.state_of(session, row)
    return whole_report(
        session, context, origins,
        name=f"campaign-{number}",
        title=f"Campaign {row.name}: {game}",
        about=f"Report of campaign {number}, {state}: {len(found) - 1} of {row.iterations} iterations evaluated.",
        finding=finding,
        more=more if control is None else f"{more} {control_finding(row.game, control)}".lstrip(),
        key_figures=key_figures if control is None else [*key_figures, *control_figures(row.game, control)],
        results=[
            ReportSection(
                "result", "Result",
                figures=[ReportFigure(chart, figure_caption, has_table=True)],
                tables=[_iterations_table(row.game, found, control)],
            ),
            _gain_section(session, row, found, control),
            _partners_section(session, row, found),
        ],
        methods=[
            *_campaign_methods(spec), *([] if control is None else [_CONTROL]),
            seeds_sentence(origins, f"campaign: {spec.seed}"),
        ],
        tables=[
            *rounds_table(origins), settings_table("settings", "What was asked for.", spec),
            *([] if control is None else [control_settings(row, control)]),
        ],
        texts=[*prompts_and_configs(session, origins), FoldedText("The campaign as JSON", as_json(row.spec))],
        limits=_campaign_limits(row, found, gain, origins, control),
        commands=[
            command
            for each in campaigns.values()
            for command in commands_of_recipe(
                CAMPAIGN, each.id, f"campaign-{each.id}", f"{quote(each.name)}/*.yaml"
            )
        ],
        before_commands=[
            ("The first command writes the campaign as a recipe with its contexts and seeds. On another machine only"
            " that archive is needed, and the base under the same name."),
            *([] if control is None else [_CONTROL_AGAIN]),
        ],
    )  # fmt: skip


def _gain(session: Session, row: Campaign, found: Sequence[IterationResult]) -> _Gain | None:
    metric = metrics_of(row.game).headline
    first, last = ((each.figures or {}).get(metric.name) for each in (found[0], found[-1]))
    if first is None or last is None:
        return None
    difference = None
    if len(found) > 1 and found[0].evaluation_id and found[-1].evaluation_id and metric.value and not metric.among:
        before, after = (matches_of(session, [each.evaluation_id or 0]) for each in (found[0], found[-1]))
        if len(before) == len(after) > 0:
            difference = mean_difference(metric.value, before, after)
    return _Gain(metric, Figure(**first), Figure(**last), difference)


def _result(
    row: Campaign, found: Sequence[IterationResult], gain: _Gain | None
) -> tuple[str, str, Sequence[KeyFigure]]:
    """The headline, its qualification, and the figures below."""
    after = len(found) - 1
    if gain is None:
        return f"Campaign {row.name} has evaluated {after + 1} models.", "", ()
    unit, title = gain.metric.unit, gain.metric.title
    old, new = number(gain.first.value, unit), number(gain.last.value, unit)
    key = [key_figure(f"Base: {title}", gain.first, unit)]
    if not after:
        return f"The base has {title} {old} before any training.", f"({beside(gain.first, unit)})", key
    times = "1 iteration" if after == 1 else f"{after} iterations"
    key.append(key_figure(f"Iteration {found[-1].number}: {title}", gain.last, unit))
    if gain.difference is None:
        return f"After {times}, {title} is {new}; it was {old} at first.", "", key
    low, high = gain.difference.low, gain.difference.high
    verb = "raise" if (low or 0) > 0 else "lower" if (high or 0) < 0 else "do not clearly change"
    if after == 1:
        verb = {"raise": "raises", "lower": "lowers"}.get(verb, "does not clearly change")
    key.append(key_difference("Difference on the same matches", gain.difference, unit))
    finding = f"{times[0].upper()}{times[1:]} {verb} {title} in self-play: from {old} to {new}"
    return finding, f"({key[-1].value}, 95 % interval {key[-1].beside}).", key


def _iterations_table(game: str, found: Sequence[IterationResult], control: CampaignControl | None) -> ReportTable:
    """All models with all figures that a campaign's page shows, by way of evaluation, with the control's below."""
    shown = metrics_of(game).shown(Use.EVALUATION)
    rows = []
    below = [] if control is None else control.found
    for run, each in [*(("", each) for each in found), *(("control, ", each) for each in below)]:
        ways: Mapping[str, Mapping[str, Any]] = {AS_PLAYED: each.figures or {}, **each.evaluations}
        for label, figures in ways.items():
            learnt = NONE if each.dataset is None or label != AS_PLAYED else str(each.dataset.rows)
            values = [in_words(figures.get(metric.name), metric.unit) for metric in shown]
            rows.append((f"{run}{each.number}", each.model.name if each.model else NONE, label, *values, learnt))
    head = ("Iteration", "Model", "Evaluated", *(heading(metric) for metric in shown), "Rows learnt")
    caption = "Every model on the same held-out material, with 95 % intervals: Wilson’s of shares, bootstrap of means."
    return plain_table("iterations", caption, head, rows)


def _gain_section(
    session: Session, row: Campaign, found: Sequence[IterationResult], control: CampaignControl | None
) -> ReportSection:
    arms = [arm_of(row, found), *([] if control is None else [arm_of(control.row, control.found)])]
    gains = gains_of(session, row.game, [each for each in arms if each.evaluations])
    return gain_section(row.game, gains, [] if control is None else [(row.name, control.apart)])


def _partners_section(session: Session, row: Campaign, found: Sequence[IterationResult]) -> ReportSection:
    """All models as they were evaluated in self-play and against others, at the temperature of the rounds."""
    models = [each.model.name for each in found if each.model]
    rounds = [
        number
        for each in found
        for number in (
            each.evaluation_id,
            *(further.round_id for label, further in each.further.items() if label.startswith("against ")),
        )
        if number is not None
    ]
    return partners_section(session, models, row.game, partner_weight_of(row.game, row.spec["config"]), rounds)


def _campaign_methods(spec: CampaignSpec) -> list[str]:
    partners = f"; shares of them are played with {', '.join(spec.play_with)}" if spec.play_with else ""
    found = [
        (
            f"Each iteration plays {spec.matches_of_round} matches of the newest model with itself{partners}, keeps"
            f" transcripts by the filter {spec.kept}, trains by {spec.method} from the"
            f" {'model before' if spec.start == 'previous' else 'base'} on the rows of"
            f" {'the last round' if spec.data_of == 'last' else 'all rounds so far'}, registers the model and evaluates"
            f" it on {spec.evaluation} matches. The model learns what it said itself, nothing that a partner said."
        ),
        (
            "All models are evaluated on the same held-out contexts or words with the same seeds, on which no round was"
            " played. Differences are taken match by match and have percentile intervals of 1,000 bootstrap resamples;"
            " a match that was aborted counts as 0."
        ),
    ]
    if spec.has_start:
        found.insert(1, "Before the rounds, one iteration learns from a dataset or from a teacher's own matches.")
    if spec.given_rewards != NO_REWARDS:
        found.append(
            f"Moves have rewards by the formula {spec.given_rewards}, shared by the decay {spec.given_decay:g}."
        )
    return found


def _campaign_limits(
    row: Campaign,
    found: Sequence[IterationResult],
    gain: _Gain | None,
    origins: Origins,
    control: CampaignControl | None,
) -> list[str]:
    points = limits_of(origins)
    if len(found) - 1 < row.iterations:
        points.insert(0, f"{row.iterations - len(found) + 1} of {row.iterations} iterations are not evaluated yet.")
    if gain is not None and gain.difference is None and len(found) > 1:
        compared = {found[0].evaluation_id, found[-1].evaluation_id}
        removed = any(row.removed_at is not None for row in origins.rounds if row.id in compared)
        why = "matches of an evaluation were removed" if removed else "the two evaluations are not of the same matches"
        points.append(f"The difference has no interval of its own: {why}.")
    if gain is not None and gain.last.no_interval:
        points.append(f"Figures without an interval are of {gain.last.no_interval}.")
    points.append(
        "Self-play rewards habits that two copies of one model share. What other partners make of the model is in the"
        " table as “against” where it was evaluated so, and nowhere else."
    )
    if control is None and len(found) > 1:
        points.append(
            "There is no control: what any training on as many rows would have brought is not known. Another campaign"
            " that differs in what is kept or learnt, with the same seed, can be set beside this one by --control."
        )
    points.append("The score that is measured is the one that transcripts are kept by; what it leaves out is not seen.")
    return points
