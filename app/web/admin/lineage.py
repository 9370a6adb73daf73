"""The lineage of a model: what it was made from, and what was made from it."""

from typing import Any

from flask import render_template, url_for
from sqlalchemy.orm import Session

from app.core.extensions import db
from app.finetuning.job import TRAINING
from app.jobs.page import job_references
from app.lineage import ancestors, descendants, models_of
from app.rounds.job import ROUND
from app.web.admin.blueprint import blueprint
from app.web.admin.lists import add_address
from app.web.threads import in_worker_thread

NEAR = 12  # models shown unfolded
ROUNDS = 5  # for a dataset
add_address("lineage", lambda number: url_for("admin.lineage", number=number))


@blueprint.get("/models/<int:number>/lineage")
def lineage(number: int) -> str:
    """Model ← job ← dataset ← rounds ← models, as far back as it goes; and what was made from the model."""
    # In a thread, as datasets may have a hundred thousand rows.
    found = in_worker_thread(db.engine, _both, number)
    above = found["above"]
    return render_template(
        "admin/lineage.html",
        model=above[0].model,
        **found,
        trained=[each for each in above if each.job],
        roots=[each.model for each in above if not each.job],
        near=NEAR,
        shown=ROUNDS,
    )


def _both(session: Session, number: int) -> dict[str, Any]:
    """What the model was made from, what was made from it, the rounds and training jobs of both with their states, and
    the models trained on datasets from which people have withdrawn something.
    """
    above, below = ancestors(session, number), descendants(session, number)
    jobs = [*(each.job for each in above if each.job), *below.jobs]
    rounds = [source.round for each in above for source in (*each.sources, *each.sft_sources) if source.round]
    return {
        "above": above,
        "below": below,
        "rounds": job_references(session, ROUND, [row.id for row in rounds]),
        "jobs": job_references(session, TRAINING, [row.id for row in jobs]),
        "states": TRAINING.states_of(session, jobs),
        "withdrawn": models_of(session),
    }
