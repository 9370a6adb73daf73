"""Benchmarks: the list, and the page of one benchmark."""

from flask_babel import lazy_gettext

from app.benchmarks.job import BENCHMARK
from app.benchmarks.scores import is_share
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobPages, register_pages

blueprint.add_app_template_global(is_share)
register_pages(
    BENCHMARK,
    JobPages(lazy_gettext("Benchmarks"), "benchmarks", "benchmark_id", below="models"),
    new=[("admin.new_benchmark", lazy_gettext("New benchmark"))],
    about=lazy_gettext(
        "A benchmark scores a model on reasoning tasks other than games, to show whether playing has made it any "
        "better at them. There are none yet."
    ),
    first=lazy_gettext("Score the first model"),
)
