"""The curves of a campaign: the figures of its models by iteration, 0 for the base."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.campaigns.iterations import results
from app.core.errors import Phrase
from app.games import metrics_of
from app.games.metrics import Use
from app.jobs.curves import Curve
from app.models import Campaign


def curves(session: Session, row: Campaign) -> Sequence[Curve]:
    """The curves of a campaign, including empty ones."""
    found = [each for each in results(session, row.id) if each.figures is not None]
    return [
        Curve(
            metric.name,
            Phrase(metric.heading),
            Phrase("Iteration"),
            [
                (each.number, value)
                for each in found
                if (value := ((each.figures or {}).get(metric.name) or {}).get("value")) is not None
            ],
        )
        for metric in metrics_of(row.game).shown(Use.EVALUATION)
    ]
