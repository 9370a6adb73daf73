"""Creating campaigns from a spec and from the file with their material."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.campaigns import lifecycle
from app.campaigns.material import Parted, split_material
from app.campaigns.spec import CampaignSpec
from app.campaigns.start_data import StartData, read_start_data, with_dataset_numbers
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import Campaign


def _prepare_campaign(session: Session, request: JobRequest[Any]) -> tuple[CampaignSpec, Parted, StartData | None]:
    """Number the datasets, part the material and read the start data: drawing and reading may each take half a
    second.
    """
    spec = with_dataset_numbers(session, request.spec)
    material = split_material(spec.game, request.files["material"], spec.evaluation, spec.seed)
    return spec, material, read_start_data(session, request.home, spec)


def _create_campaign(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[Campaign]:
    return [lifecycle.create(session, *request.known, queued=queued, requester=requester)]


CREATION = JobCreation(spec=CampaignSpec, create=_create_campaign, prepare=_prepare_campaign)
