"""Benchmarks: the list, one benchmark as it runs, the form, and what can be done with one."""

from collections.abc import Mapping

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from sqlalchemy.orm import Session

from app.benchmarks import lifecycle, listing, tasks
from app.benchmarks.job import BENCHMARK
from app.benchmarks.scores import is_share
from app.benchmarks.spec import BenchmarkSpec
from app.core.errors import AppError
from app.core.extensions import reading
from app.core.validation import whole_number
from app.jobs.kind import LARGEST
from app.registry import list_models
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobListPage, JobPages, job_actions, list_page, register_pages, requester
from app.web.admin.spec_form import filled_in, form_fields, typed
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.seats import settings

blueprint.add_app_template_global(is_share)


@blueprint.get("/benchmarks")
def benchmarks() -> ResponseReturnValue:
    """A page of all benchmarks, the latest first."""

    def choose(session: Session, before: int | None) -> JobListPage:
        found, older = listing.chosen_benchmarks(session, before)
        return JobListPage([each.row for each in found], older, {"benchmarks": found})

    return list_page("admin/benchmarks.html", choose)


@blueprint.get("/benchmarks/<int:benchmark_id>")
def benchmark_page(benchmark_id: int) -> str:
    """One benchmark: how far it is, and what each task has come to."""
    return _page(benchmark_id)


@blueprint.get("/benchmarks/new")
def new_benchmark() -> str:
    """The form, for the model that the address names, or like a benchmark that was."""
    chosen, number = request.args.get("model", ""), request.args.get("like", "")
    with reading() as session:
        models = _models(session)
        if number:
            row = BENCHMARK.get(session, whole_number(number, "like", 1, LARGEST))
            return _form(models, filled_in(BenchmarkSpec, lifecycle.spec_of(session, row).to_json()), like=row.id)
        kind = models.get(chosen) or next(iter(models.values()), "local")
        usual = next(each.name for each in tasks.SHIPPED.values() if each.answers == (kind == "api"))
        return _form(models, filled_in(BenchmarkSpec, {"model": chosen, "tasks": usual}))


@blueprint.post("/benchmarks/new")
def start_benchmark() -> ResponseReturnValue:
    """Write the benchmark down, call a worker, and show it; or say why it cannot be."""
    form, home, by = typed(BenchmarkSpec), settings().home, requester()
    try:
        spec = BenchmarkSpec.read(form)
        number = write_once(lambda session: lifecycle.create(session, spec, queued=True, home=home, requester=by).id)
    except AppError as error:
        with reading() as session:
            return _form(_models(session), form, error), error.status
    enqueue(number)
    return redirect(url_for("admin.benchmark_page", benchmark_id=number), 303)


def enqueue(number: int) -> None:
    """Call a worker to a benchmark, after the commit."""
    with reading() as session:
        queue = BENCHMARK.queue_of(session, number)
    BENCHMARK.enqueue(settings().broker_url, number, queue=queue)


def _models(session: Session) -> dict[str, str]:
    """The kinds of the models that can be scored, by name."""
    return {each.name: each.kind for each in list_models(session, archived=False) if each.kind != "scripted"}


def _form(
    models: Mapping[str, str], form: Mapping[str, str], error: AppError | None = None, *, like: int | None = None
) -> str:
    named = [(name, name) for name in models] or [("", gettext("There is none yet"))]
    return render_template(
        "admin/benchmark-new.html",
        form=form,
        like=like,
        fields=form_fields(BenchmarkSpec, {"model": named}),
        presets=tasks.PRESETS,
        shipped=tasks.SHIPPED.values(),
        refused=None if error is None else RefusedField(error.field or "tasks", error),
    )


def _page(benchmark_id: int, refused: AppError | None = None) -> str:
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


register_pages(BENCHMARK, JobPages(lazy_gettext("Benchmarks"), "benchmarks", "benchmark_id", _page, below="models"))
