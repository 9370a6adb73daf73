"""Starting runs of recipes: what their form has beyond the spec."""

from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError, FieldError, Phrase
from app.core.extensions import db
from app.jobs.creation import JobRequest
from app.models import RecipeRun
from app.recipes.creation import prepare
from app.recipes.estimate import RecipeEstimate, estimate
from app.recipes.job import RECIPE
from app.recipes.spec import RecipeSpec
from app.web.admin.job_form import FormWords, JobForm, register_form
from app.web.admin.spec_form import Form
from app.web.admin.spec_page import Asked
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.threads import in_worker_thread


class _RecipeForm(JobForm[RecipeRun, RecipeSpec]):
    kind = RECIPE
    spec = RecipeSpec
    field = "recipe"
    words = FormWords(
        title=lazy_gettext("New recipe run"),
        intro=lazy_gettext(
            "A file of steps describes a whole experiment. Workers go through them one after another; you can close"
            " this page."
        ),
        start=lazy_gettext("Start"),
        back=lazy_gettext("Back to the recipes"),
        estimate=lazy_gettext("What it will take"),
        estimate_hint=lazy_gettext(
            "From past calls of these models, or typical ones. How long trainings and benchmarks take is not known"
            " beforehand."
        ),
    )
    estimate_template = "admin/recipe-estimate.html"

    def estimated(self, session: Session, asked: Asked[RecipeSpec]) -> RecipeEstimate:  # noqa: ARG002 - in a thread
        found: RecipeEstimate = in_worker_thread(
            db.engine, _estimated, JobRequest(asked.spec, asked.files, settings().home)
        )
        return found

    def page(self, session: Session, form: Form, preset: str = "", **more: object) -> str:
        """The page of the form, with the text of an earlier run for editing."""
        if form["like"] and not form["recipe_text"]:
            row = RECIPE.get(session, int(form["like"]))
            form = {**form, "recipe_text": row.text, "recipe_name": row.spec["recipe"]}
        return super().page(session, form, preset, **more)  # type: ignore[arg-type]

    def refusal(self, error: AppError, form: Form) -> RefusedField:
        if isinstance(error, FieldError) and (error.field or "").startswith("inputs."):
            return RefusedField("inputs", error.of("inputs", subject=Phrase("Inputs")))
        return super().refusal(error, form)


def _estimated(session: Session, request: JobRequest[RecipeSpec]) -> RecipeEstimate:
    new = prepare(session, request)
    return estimate(session, new.plan, new.loaded.files)


register_form(_RecipeForm())
