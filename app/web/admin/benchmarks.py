"""Benchmarks: the list, and one benchmark as it runs."""

from flask import render_template
from flask_babel import lazy_gettext

from app.benchmarks import listing
from app.benchmarks.job import BENCHMARK
from app.benchmarks.scores import is_share
from app.core.errors import AppError
from app.core.extensions import reading
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobPages, job_actions, register_pages

blueprint.add_app_template_global(is_share)


@blueprint.get("/benchmarks/<int:benchmark_id>")
def benchmark_page(benchmark_id: int) -> str:
    """One benchmark: how far it is, and the score of each task."""
    return _detail(benchmark_id)


def _detail(benchmark_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        row = BENCHMARK.get(session, benchmark_id)
        [item] = listing.benchmark_items(session, [row])
        results = listing.results_of(session, [row])[row.id]
        return render_template(
            "admin/benchmark.html",
            job=row,
            item=item,
            figures=listing.figures_of(session, [row])[row.id],
            results={each.task: each for each in results},
            shares=sum(is_share(each.metric, each.value) for each in results),
            mean=listing.mean_of(results),
            usage=listing.usage_of(session, [row]).get(row.id),
            refused=refused,
            **job_actions(BENCHMARK, row, item.state),
        )


register_pages(
    BENCHMARK,
    JobPages(lazy_gettext("Benchmarks"), "benchmarks", "benchmark_id", _detail, below="models"),
    new=[("admin.new_benchmark", lazy_gettext("New benchmark"))],
    about=lazy_gettext(
        "A benchmark scores a model on reasoning tasks that are no games, so that one can see whether playing has made"
        " it any better at them. There is none yet."
    ),
    first=lazy_gettext("Score the first model"),
)
