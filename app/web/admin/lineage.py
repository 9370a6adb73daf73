"""The lineage of a model: what it was made from, and what was made from it."""

from collections.abc import Mapping, Sequence

from flask import render_template, url_for
from sqlalchemy.orm import Session

from app.core.extensions import db
from app.finetuning.job import TRAINING
from app.lineage import Descendants, ModelOrigin, ancestors, descendants, models_of
from app.models import Dataset
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import add_address
from app.web.threads import in_worker_thread

NEAR = 12  # models that are unfolded
ROUNDS = 5  # of a dataset
add_address("lineage", lambda number: url_for("admin.lineage", number=number))


@blueprint.get("/models/<int:number>/lineage")
def lineage(number: int) -> str:
    """Model ← job ← dataset ← rounds ← models, as far back as there are any; and what was made from the model."""
    # In a thread: datasets may have a hundred thousand rows.
    above, below, job_states, withdrawn = in_worker_thread(db.engine, _both, number)
    return render_template(
        "admin/lineage.html",
        model=above[0].model,
        above=above,
        below=below,
        states=job_states,
        trained=[each for each in above if each.job],
        roots=[each.model for each in above if not each.job],
        near=NEAR,
        shown=ROUNDS,
        withdrawn=withdrawn,
    )


def _both(
    session: Session, number: int
) -> tuple[list[ModelOrigin], Descendants, dict[int, str], Mapping[int, Sequence[Dataset]]]:
    """What the model was made from, what was made from it, the states of the training jobs, and the models that
    learned from datasets of which people have withdrawn something.
    """
    above, below = ancestors(session, number), descendants(session, number)
    jobs = [*(each.job for each in above if each.job), *below.jobs]
    return above, below, {job.id: TRAINING.state_of(session, job) for job in jobs}, models_of(session)
