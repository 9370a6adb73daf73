"""The admin pages, for signed-in experimenters only: one module a subject, all on one blueprint."""

from app.web.admin import (
    campaigns,
    campaigns_new,
    datasets,
    datasets_import,
    datasets_new,
    home,
    job_pages,
    jobs,
    jobs_new,
    lineage,
    matches,
    matches_analysis,
    models,
    models_form,
    rounds,
    rounds_compare,
    rounds_new,
)
from app.web.admin.blueprint import blueprint

__all__ = [
    "blueprint",
    "campaigns",
    "campaigns_new",
    "datasets",
    "datasets_import",
    "datasets_new",
    "home",
    "job_pages",
    "jobs",
    "jobs_new",
    "lineage",
    "matches",
    "matches_analysis",
    "models",
    "models_form",
    "rounds",
    "rounds_compare",
    "rounds_new",
]
