"""The round or the training job that a campaign waits for."""

from collections.abc import Collection
from itertools import groupby
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.kind import JobKind
from app.models import CampaignEvaluation, CampaignIteration, CampaignRound
from app.rounds.job import ROUND


def awaited_jobs(session: Session, campaign_ids: Collection[int]) -> dict[int, AwaitedJob]:
    """What each of these campaigns has begun and waits for, by the campaign's number; those that wait are in it."""
    begun = select(CampaignIteration).where(CampaignIteration.campaign_id.in_(campaign_ids))
    ordered = session.scalars(begun.order_by(CampaignIteration.campaign_id, CampaignIteration.number))
    last = {number: [*each][-1] for number, each in groupby(ordered, lambda each: each.campaign_id)}
    further = select(CampaignEvaluation).where(CampaignEvaluation.campaign_id.in_(campaign_ids))
    jobs: dict[int, list[AwaitedJob]] = {number: [] for number in last}
    for campaign, step in last.items():
        own: list[tuple[JobKind[Any], int | None]] = [(ROUND, step.round_id), (TRAINING, step.job_id)]
        own.append((ROUND, step.evaluation_id))
        jobs[campaign] += [AwaitedJob(kind, number) for kind, number in own if number is not None]
    with_partners = select(CampaignRound).where(CampaignRound.campaign_id.in_(campaign_ids))
    evaluations = session.scalars(further.order_by(CampaignEvaluation.campaign_id, CampaignEvaluation.round_id))
    for each in [*session.scalars(with_partners), *evaluations]:
        if each.iteration == last[each.campaign_id].number:
            jobs[each.campaign_id].append(AwaitedJob(ROUND, each.round_id))
    undone: set[AwaitedJob] = set()
    for kind in (ROUND, TRAINING):
        numbers = {job.number for found in jobs.values() for job in found if job.kind is kind}
        rows = select(kind.table.id).where(kind.table.id.in_(numbers), kind.table.status != states.DONE)
        undone |= {AwaitedJob(kind, number) for number in session.scalars(rows)}
    waits = {campaign: next((job for job in found if job in undone), None) for campaign, found in jobs.items()}
    return {campaign: job for campaign, job in waits.items() if job is not None}


def rounds_of(session: Session, campaign_id: int) -> list[AwaitedJob]:
    """All rounds that a campaign has begun."""
    step = CampaignIteration
    columns = step.round_id, step.evaluation_id, CampaignRound.round_id, CampaignEvaluation.round_id
    begun = (select(each).where(each.class_.campaign_id == campaign_id, each.is_not(None)) for each in columns)
    return [AwaitedJob(ROUND, number) for each in begun for number in session.scalars(each) if number is not None]
