"""Campaigns: the list, one campaign as it goes on, its figure, and what can be done with it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import jsonify, render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.themes import LIGHT
from app.campaigns import listing
from app.campaigns.job import CAMPAIGN
from app.campaigns.listing import CampaignListItem, IterationResult
from app.campaigns.spec import spec_of
from app.core.errors import AppError, NotFound, Phrase
from app.core.extensions import reading
from app.games import metrics_of
from app.games.metrics import RATIO, Use
from app.web.admin.benchmarks_of_campaign import benchmarks_of
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobListPage, JobPages, job_actions, list_page, register_pages
from app.web.admin.rounds_analysis import TitledFigure, labels_of, notes_of
from app.web.chart_language import page_language
from app.web.translations import game_titles


@blueprint.get("/campaigns")
def campaigns() -> ResponseReturnValue:
    """A page of all campaigns, the latest first."""

    def choose(session: Session, before: int | None) -> JobListPage:
        found, older = listing.chosen_campaigns(session, before)
        latest = {line.row.id: _latest(line) for line in found}
        fields = {"campaigns": found, "titles": game_titles(), "latest": latest}
        return JobListPage([line.row for line in found], older, fields)

    return list_page("admin/campaigns.html", choose)


def _latest(line: CampaignListItem) -> TitledFigure | None:
    """What the list shows of a campaign: the figure of its latest model that says most."""
    metric = metrics_of(line.row.game).headline
    figure_json = (line.latest or {}).get(metric.name)
    return None if figure_json is None else TitledFigure(metric.name, gettext(metric.heading), Figure(**figure_json))


# ---- One campaign ------------------------------------------------------------


@blueprint.get("/campaigns/<int:campaign_id>")
def campaign_page(campaign_id: int) -> str:
    """One campaign: the step that it is at, the results of its models, and its spec."""
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
    return jsonify(chart.spec(request.args.get("theme", LIGHT), titled=False))


def _campaign_page(campaign_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        row = CAMPAIGN.get(session, campaign_id)
        asked = spec_of(row.spec)
        line, results = listing.list_items(session, [row])[0], listing.results(session, campaign_id)
        shown, compared = (metrics_of(row.game).shown(use) for use in (Use.EVALUATION, Use.CONDITION))
        return render_template(
            "admin/campaign.html",
            campaign=row,
            line=line,
            title=game_titles().get(row.game, row.game),
            spec=row.spec,
            asked=asked,
            conditions=asked.further,
            figures=listing.figures_of(session, row),
            now=listing.now_of(session, row),
            results=results,
            columns=labels_of(shown),
            notes=notes_of(each for each in shown if each.aggregate != RATIO),
            further=_further(results),
            compared=labels_of(compared),
            compared_notes=notes_of(each for each in compared if each.aggregate == RATIO),
            benchmarks=benchmarks_of(session, row),
            chart=listing.figure_of(session, campaign_id, page_language()),
            refused=refused,
            **job_actions(CAMPAIGN, row, line.state),
        )


register_pages(CAMPAIGN, JobPages(lazy_gettext("Campaigns"), "campaigns", "campaign_id", _campaign_page))


class _Compared(NamedTuple):
    """A model's figures in one manner of evaluation; `label` is empty for that of the campaign's rounds."""

    number: int
    label: str
    round_id: int | None
    figures: Mapping[str, Any] | None


def _further(results: Sequence[IterationResult]) -> list[_Compared]:
    """Every evaluation of every model, those of one model together; none where models are evaluated in one manner."""
    if not any(each.further for each in results):
        return []
    return [
        found
        for each in results
        for found in (
            _Compared(each.row.number, "", each.row.evaluation_id, each.row.figures),
            *(_Compared(each.row.number, label, own.round_id, own.figures) for label, own in each.further.items()),
        )
    ]
