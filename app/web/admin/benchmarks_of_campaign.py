"""The benchmark results of a campaign's models: a part of the campaign's page, its chart, and its button."""

from typing import NamedTuple

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.analysis.chart import Chart
from app.benchmarks import lifecycle
from app.benchmarks.chart import BenchmarkPoint, benchmark_figure
from app.benchmarks.job import BENCHMARK
from app.benchmarks.listing import BenchmarkComparison, compare
from app.benchmarks.spec import BenchmarkSpec
from app.benchmarks.tasks import PRESETS, SHIPPED
from app.campaigns.iterations import results
from app.campaigns.job import CAMPAIGN
from app.core.errors import AppError, NotFound, Phrase
from app.core.extensions import reading
from app.models import Campaign, LanguageModel
from app.web.admin.blueprint import blueprint
from app.web.admin.figures import spec_answer
from app.web.admin.job_pages import render_job, requester
from app.web.chart_language import page_language
from app.web.form_writes import write_once
from app.web.seats import settings


class CampaignBenchmarks(NamedTuple):
    """A comparison of the campaign's models and its chart, None until one was scored; and the tasks its button offers.

    `iterations` maps each model's id to the number of its iteration.
    """

    compared: BenchmarkComparison | None
    chart: Chart | None
    iterations: dict[int, int]
    tasks: list[str]


def benchmarks_of(session: Session, row: Campaign) -> CampaignBenchmarks:
    """The benchmarks of a campaign's models, the base first."""
    models = _models_by_number(session, row.id)
    iterations = {model.id: number for number, model in models.items()}
    compared = compare(session, [*models.values()])
    chart = None
    if compared is not None:
        points = [BenchmarkPoint(iterations[each.model.id], each) for each in compared.models]
        language = page_language()
        called = language.gettext("campaign %(number)s (%(name)s)", number=row.id, name=row.name)
        name = f"campaign-{row.id}-benchmarks"
        chart = benchmark_figure(name, called, row.iterations, compared.common, points, language)
    shipped = [each.name for each in SHIPPED.values() if not each.answers]
    return CampaignBenchmarks(compared, chart, iterations, [*shipped, *PRESETS])


@blueprint.get("/campaigns/<int:campaign_id>/benchmarks.json")
def campaign_benchmarks(campaign_id: int) -> ResponseReturnValue:
    """The chart of a campaign's benchmarks as a Vega-Lite spec, in the colours of `theme`: light or dark."""
    with reading() as session:
        chart = benchmarks_of(session, CAMPAIGN.get(session, campaign_id)).chart
    if chart is None:
        raise NotFound(
            "benchmarks",
            expected=Phrase("some of campaign %(number)s", number=campaign_id),
            got=Phrase("none before its models were scored on a task that all of them have"),
        )
    return spec_answer(chart)


@blueprint.post("/campaigns/<int:campaign_id>/benchmarks")
def benchmark_campaign(campaign_id: int) -> ResponseReturnValue:
    """Score every model of a campaign that has not been scored this way yet."""
    given = {name: request.form.get(name, "") for name in ("tasks", "item_limit")}  # the only fields of the button
    home, by = settings().home, requester()

    def create(session: Session) -> list[int]:
        models = [*_models_by_number(session, CAMPAIGN.get(session, campaign_id).id).values()]
        return [each.id for each in lifecycle.create_missing(session, models, spec, home=home, requester=by)]

    try:
        spec = BenchmarkSpec.read({**given, "model": "each of them"})
        created = write_once(create)
    except AppError as error:
        return render_job(CAMPAIGN, campaign_id, error), error.status
    with reading() as session:
        queues = {number: BENCHMARK.queue_of(session, number) for number in created}
    for number, queue in queues.items():
        BENCHMARK.enqueue(settings().broker_url, number, queue=queue)
    return redirect(url_for("admin.campaign_page", campaign_id=campaign_id, _anchor="benchmarks"), 303)


def _models_by_number(session: Session, campaign_id: int) -> dict[int, LanguageModel]:
    """The models of a campaign by iteration number."""
    return {each.number: each.model for each in results(session, campaign_id) if each.model is not None}
