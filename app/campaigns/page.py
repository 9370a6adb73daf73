"""The page of a campaign: the results of its models, and what changes while it runs."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.campaigns.iterations import IterationResult, results_of
from app.campaigns.job import CAMPAIGN
from app.campaigns.listing import evaluated, figures_of
from app.jobs.page import JobPage
from app.models import Campaign


def _json_of_campaigns(session: Session, rows: Sequence[Campaign]) -> list[dict[str, Any]]:
    found, results = CAMPAIGN.states_of(session, rows), results_of(session, rows)
    return [_campaign_json(row, found[row.id], results[row.id]) for row in rows]


def _campaign_json(row: Campaign, state: str, found: Sequence[IterationResult]) -> dict[str, Any]:
    """A campaign as JSON."""
    return {
        "campaign_id": row.id,
        "name": row.name,
        "game": row.game,
        "status": state,
        "error": row.error,
        "requested_by": row.requested_by,
        "iterations": row.iterations,
        "evaluated": evaluated(row, found),
        "spec": row.spec,
        "results": [
            {
                "iteration": each.number,
                "model": each.model and each.model.name,
                "round_id": each.round_id,
                "rounds_with": dict(each.with_partners),
                "dataset_id": each.dataset and each.dataset.id,
                "job_id": each.job_id,
                "evaluation_id": each.evaluation_id,
                "figures": each.figures,
                "evaluations": {
                    label: {"round_id": found.round_id, "figures": found.figures}
                    for label, found in each.further.items()
                },
            }
            for each in found
        ],
    }


PAGE: JobPage[Campaign] = JobPage(
    kind=CAMPAIGN,
    sections=[],
    whole=_json_of_campaigns,
    figures=lambda session, rows: {row.id: figures_of(session, row) for row in rows},
)
