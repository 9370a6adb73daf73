"""Walks through a version of a study outside any wave, by signed links for ten walks each. Nothing here commits."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Invalid, Phrase, TooMany
from app.models import Arm, Enrolment, Participant, StudyVersion
from app.registry.spending import spending_limit
from app.studies.enrolment import new_progress
from app.studies.progress import StudyProgress, unknown_link
from app.studies.store import check_models_there, models_of

PREVIEW = "preview"
_PREVIEW_SALT = "parlor.study-preview"
MOST_WALKS = 10  # through a version by one preview link, as each leaves rows behind


class Preview(NamedTuple):
    """What a preview link shows: a version, and one of its arms; None: any. `part` counts the links before it."""

    version_id: int
    arm_id: int | None
    part: int = 0


def preview_token(secret: str, version_id: int, arm_id: int | None = None, walks: int = 0) -> str:
    """A signed link to walk through a version, in one of its arms, at most ten times.

    `walks` is the number of walks so far: a link made when one is used up is a new one, for the next ten.
    """
    part = walks // MOST_WALKS
    return str(URLSafeSerializer(secret, salt=_PREVIEW_SALT).dumps([version_id, arm_id, *([part] if part else [])]))


def read_preview(secret: str, token: str) -> Preview:
    """What a preview link shows. Raises NotFound for a link that Parlor did not sign."""
    try:
        version_id, arm_id, *part = URLSafeSerializer(secret, salt=_PREVIEW_SALT).loads(token)
    except (BadSignature, ValueError, TypeError):
        raise unknown_link() from None
    return Preview(version_id, arm_id, part[0] if part else 0)


def preview_walks(session: Session, version_id: int) -> Mapping[int | None, int]:
    """The number of walks through a version so far, by arm; the total is under None."""
    walks = select(Enrolment.arm_id, func.count()).where(
        Enrolment.study_version_id == version_id, Enrolment.wave_id.is_(None)
    )
    found: dict[int | None, int] = dict(session.execute(walks.group_by(Enrolment.arm_id)).all())
    return {**found, None: sum(found.values())}


def is_used_up(session: Session, preview: Preview) -> bool:
    """Whether the ten walks of a preview link are used up."""
    walks = preview_walks(session, preview.version_id)
    return walks.get(preview.arm_id, 0) >= (preview.part + 1) * MOST_WALKS


def is_over_budget(session: Session, settings: Settings, preview: Preview) -> bool:
    """Whether a walk would meet models behind an API while the budget of the installation is used up."""
    models = models_of(session, session.get_one(StudyVersion, preview.version_id)).values()
    return any(model.kind == "api" for model in models) and spending_limit(session, settings) is not None


def enter_preview(session: Session, preview: Preview, device: str) -> StudyProgress:
    """A new walk through a version. It takes no place, belongs to no wave, and is in no export.

    Raises Invalid, and TooMany for a link that is used up.
    """
    # Locked, so that each of several simultaneous walks counts those before it.
    version = session.get(StudyVersion, preview.version_id, with_for_update={"key_share": True})
    arm = None if preview.arm_id is None else session.get(Arm, preview.arm_id)
    if version is None or (preview.arm_id is not None and (arm is None or arm.study_version_id != version.id)):
        raise Invalid("link", expected=Phrase("one to an existing version and arm"), got=Phrase("another one"))
    check_models_there(session, version)
    if is_used_up(session, preview):
        raise TooMany(Phrase("This preview has been used %(most)s times.", most=MOST_WALKS))
    person = Participant(
        study_id=version.study_id, code=f"{PREVIEW}-{secrets.token_hex(8)}", created_at=datetime.now(UTC)
    )
    session.add(person)
    session.flush()
    progress = new_progress(session, version, person, None, device, device)
    progress.enrolment.arm_id = preview.arm_id
    return progress
