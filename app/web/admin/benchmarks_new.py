"""Starting benchmarks: what their form has beyond the spec."""

from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.benchmarks import tasks
from app.benchmarks.job import BENCHMARK
from app.benchmarks.spec import BenchmarkSpec
from app.games.base import JSON
from app.models import BenchmarkJob
from app.registry import list_models
from app.web.admin.job_form import FormWords, JobForm, register_form


class _BenchmarkForm(JobForm[BenchmarkJob, BenchmarkSpec]):
    kind = BENCHMARK
    spec = BenchmarkSpec
    words = FormWords(
        title=lazy_gettext("New benchmark"),
        intro=lazy_gettext("A model is scored on reasoning tasks. Workers do it; you can close this page."),
        start=lazy_gettext("Start the benchmark"),
        back=lazy_gettext("Back to the benchmarks"),
    )
    field = "tasks"
    below = "admin/benchmark-tasks.html"  # the spec does not say which tasks exist

    def suggested(self, session: Session, given: JSON) -> JSON:
        """The tasks that the model can be scored on: the shipped ones that suit its kind."""
        kinds = {each.name: each.kind for each in list_models(session, archived=False) if each.kind != "scripted"}
        kind = kinds.get(given.get("model", "")) or next(iter(kinds.values()), "local")
        return {"tasks": next(each.name for each in tasks.SHIPPED.values() if each.answers == (kind == "api")), **given}

    def further(self) -> JSON:
        """The tasks for `below`."""
        return {"task_presets": tasks.PRESETS, "shipped": tasks.SHIPPED.values()}


register_form(_BenchmarkForm())
