"""Who receives the rows of a training, and whether the people in them agreed to that recipient.

Consent covers what people read: a design lists under `consent.training_recipients` who gets their games for training,
and the consent page says so. Players outside of studies are asked about training in general, with no recipient named.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.finetuning.together.address import HOSTS
from app.models import Dataset, DatasetRow, Enrolment, LanguageModel, SeatRow, StudyVersion
from app.players.api.addresses import host_of
from app.players.api.options import read_options
from app.registry import PERSON

# Familiar names of vendors by host; all others are called by their host.
NAMES: Mapping[str, str] = {
    "api.openai.com": "OpenAI",
    "tinker.thinkingmachines.dev": "Tinker",
    **dict.fromkeys(HOSTS, "Together"),
}


def recipient_of(base: LanguageModel | None) -> str | None:
    """Who gets the rows that a base is trained on; None where they stay here."""
    if base is None or base.kind != "api":
        return None
    host = host_of(read_options(base.options).base_url)
    return NAMES.get(host, host)


def check_recipient(session: Session, dataset: Dataset, base: LanguageModel | None, field: str = "dataset") -> None:
    """Raises Invalid, with counts, if a dataset's rows would go to a recipient that the consent of a person in them did
    not name.
    """
    recipient = recipient_of(base)
    if recipient is None:
        return
    matches = select(DatasetRow.match_id).where(DatasetRow.dataset_id == dataset.id).distinct()
    by_version = dict(
        session.execute(
            select(Enrolment.study_version_id, func.count(SeatRow.match_id.distinct()))
            .select_from(SeatRow)
            .outerjoin(Enrolment, Enrolment.id == SeatRow.enrolment_id)
            .where(SeatRow.kind == PERSON, SeatRow.match_id.in_(matches))
            .group_by(Enrolment.study_version_id)
        ).all()
    )
    versions = session.scalars(select(StudyVersion).where(StudyVersion.id.in_(filter(None, by_version))))
    named = {version.id for version in versions if recipient.casefold() in _named_in(version)}
    without = sum(count for version, count in by_version.items() if version not in named)
    if without:
        raise Invalid(
            field,
            expected=Phrase("games of people whose consent names %(name)s as a recipient for training", name=recipient),
            got=Phrase(
                "%(dataset)s, with %(without)s of %(count)s games with people whose consent does not name it",
                dataset=dataset.reference,
                without=without,
                count=sum(by_version.values()),
            ),
            remedy=Phrase("train a local model, or name it under consent.training_recipients before people take part"),
        )


def _named_in(version: StudyVersion) -> Collection[str]:
    """The training recipients that a version's consent names, case-folded."""
    design: Mapping[str, Any] = json.loads(version.design["design"])
    return {str(name).strip().casefold() for name in design.get("consent", {}).get("training_recipients", ())}
