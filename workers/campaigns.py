"""The steps of campaigns. A campaign never keeps a worker waiting: upkeep calls one when the next step may be due."""

import uuid

from celery import shared_task

from app.campaigns.steps import CampaignContext, take_steps
from app.queues import CARRY_ON
from workers.context import context_for_turn


@shared_task(name=CARRY_ON, ignore_result=True)  # type: ignore[untyped-decorator]
def carry(campaign_id: int) -> None:
    """Take every step of a campaign that can be taken now."""
    desk = context_for_turn()
    take_steps(CampaignContext(desk.database, desk.settings.home, uuid.uuid4().hex), campaign_id)
