"""The lineage of a model: how it was made, back to where that began, and what came of it."""

from flask import render_template
from sqlalchemy.orm import Session

from app.extensions import db
from app.finetuning.lifecycle import state_of
from app.lineage import Descendants, ModelOrigin, ancestors, descendants
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_scores import in_worker_thread

NEAR = 12  # models that are unfolded
ROUNDS = 5  # of a dataset


@blueprint.get("/models/<int:number>/lineage")
def lineage(number: int) -> str:
    """Model ← job ← dataset ← rounds ← models, as far back as there are any; and what came of the model."""
    above, below = in_worker_thread(db.engine, _both, number)  # datasets may have a hundred thousand rows
    jobs = [*(each.job for each in above if each.job), *below.jobs]
    return render_template(
        "admin/lineage.html",
        model=above[0].model,
        above=above,
        below=below,
        states={job.id: state_of(job) for job in jobs},
        trained=[each for each in above if each.job],
        roots=[each.model for each in above if not each.job],
        near=NEAR,
        shown=ROUNDS,
    )


def _both(session: Session, number: int) -> tuple[list[ModelOrigin], Descendants]:
    return ancestors(session, number), descendants(session, number)
