"""The curves of a training: its losses, and the extra metrics of its method, by step."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.analysis.losses import points_of
from app.analysis.training_figures import TITLES
from app.core.errors import Phrase
from app.finetuning.listing import events_of
from app.jobs.curves import Curve
from app.models import TrainingJob


def curves(session: Session, row: TrainingJob) -> Sequence[Curve]:
    """The curves of a training job, including empty ones."""
    events, step = events_of(session, row.id), Phrase("Step")
    return [
        Curve("loss", Phrase("Loss, training"), step, points_of(events, "step")),
        Curve("eval_loss", Phrase("Loss, held out"), step, points_of(events, "eval")),
        *(Curve(name, Phrase(title), step, points_of(events, "step", name)) for name, title in TITLES.items()),
    ]
