"""Campaigns: the list, the page of one campaign, its figure, and its actions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext

from app.campaigns import lifecycle, listing
from app.campaigns.export import recipe_archive
from app.campaigns.iterations import IterationResult, results
from app.campaigns.job import CAMPAIGN
from app.core.errors import AppError, NotFound, Phrase
from app.core.extensions import reading
from app.finetuning.job import TRAINING
from app.games import metrics_of
from app.games.metrics import RATIO, Use
from app.jobs.kind import JobKind
from app.jobs.page import job_references
from app.rounds.job import ROUND
from app.web.admin.archives import archive_response
from app.web.admin.benchmarks_of_campaign import benchmarks_of
from app.web.admin.blueprint import blueprint
from app.web.admin.figures import spec_answer
from app.web.admin.job_pages import JobPages, job_actions, register_pages
from app.web.admin.rounds_analysis import labels_of, notes_of
from app.web.chart_language import page_language
from app.web.translations import game_titles

# ---- One campaign ------------------------------------------------------------


@blueprint.get("/campaigns/<int:campaign_id>")
def campaign_page(campaign_id: int) -> str:
    """One campaign: its current step, the results of its models, and its spec."""
    return _campaign_page(campaign_id)


@blueprint.get("/campaigns/<int:campaign_id>/figure.json")
def campaign_figure(campaign_id: int) -> ResponseReturnValue:
    """The figure of a campaign as a Vega-Lite spec, in the colours of `theme`: light or dark."""
    with reading() as session:
        chart = listing.figure_of(session, campaign_id, page_language())
    if chart is None:
        raise NotFound(
            "figure",
            expected=Phrase("one of campaign %(number)s", number=campaign_id),
            got=Phrase("none before its base was evaluated"),
        )
    return spec_answer(chart)


@blueprint.get("/campaigns/<int:campaign_id>/recipe.zip")
def export_campaign(campaign_id: int) -> ResponseReturnValue:
    """A campaign as a recipe, with the files of its material."""
    return archive_response(CAMPAIGN, campaign_id, recipe_archive)


def _campaign_page(campaign_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        row = CAMPAIGN.get(session, campaign_id)
        asked = lifecycle.spec_of(row.spec)
        line, found = listing.list_items(session, [row])[0], results(session, campaign_id)
        now = listing.now_of(session, row)
        shown, compared = (metrics_of(row.game).shown(use) for use in (Use.EVALUATION, Use.CONDITION))
        return render_template(
            "admin/campaign.html",
            campaign=row,
            line=line,
            title=game_titles().get(row.game, row.game),
            asked=asked,
            start_matches=row.spec.get(lifecycle.START_MATCHES),
            conditions=asked.further,
            figures=listing.figures_of(session, row),
            now=now,
            results=found,
            rounds=job_references(session, ROUND, _rounds_of(found, now)),
            trainings=job_references(
                session, TRAINING, [*(each.job_id for each in found), *_current_job_ids(now, TRAINING)]
            ),
            columns=labels_of(shown),
            notes=notes_of(each for each in shown if each.aggregate != RATIO),
            further=_further(found),
            compared=labels_of(compared),
            compared_notes=notes_of(each for each in compared if each.aggregate == RATIO),
            benchmarks=benchmarks_of(session, row),
            chart=listing.figure_of(session, campaign_id, page_language()),
            refused=refused,
            **job_actions(CAMPAIGN, row, line.state),
        )


register_pages(
    CAMPAIGN,
    JobPages(lazy_gettext("Campaigns"), "campaigns", "campaign_id", _campaign_page),
    new=[("admin.new_campaign", lazy_gettext("New campaign"))],
    about=lazy_gettext(
        "In a campaign a model plays against itself, learns from its better transcripts, and plays again with what it"
        " has learned. There are none yet."
    ),
    first=lazy_gettext("Start the first campaign"),
)


def _rounds_of(found: Sequence[IterationResult], now: listing.CurrentStep | None) -> list[int | None]:
    """The numbers of all rounds that the page names."""
    numbers = _current_job_ids(now, ROUND)
    for each in found:
        numbers += [each.round_id, each.evaluation_id, *each.with_partners.values()]
        numbers += [own.round_id for own in each.further.values()]
    return numbers


def _current_job_ids(now: listing.CurrentStep | None, kind: JobKind[Any]) -> list[int | None]:
    """The id of the current step's job, if it is of that kind."""
    part = None if now is None else now.part
    return [part.number] if part is not None and part.kind is kind else []


class _Compared(NamedTuple):
    """A model's figures in one evaluation setting; `label` is empty for that of the campaign's rounds."""

    number: int
    label: str
    round_id: int | None
    figures: Mapping[str, Any] | None


def _further(iterations: Sequence[IterationResult]) -> list[_Compared]:
    """Every evaluation of every model, grouped by model; empty if models are evaluated in only one setting."""
    if not any(each.further for each in iterations):
        return []
    return [
        found
        for each in iterations
        for found in (
            _Compared(each.number, "", each.evaluation_id, each.figures),
            *(_Compared(each.number, label, own.round_id, own.figures) for label, own in each.further.items()),
        )
    ]
