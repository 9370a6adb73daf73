"""Pushes for tests."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import LanguageModel
from app.publication.job import PUBLICATION
from app.publication.spec import PublicationSpec


def make_publication(session: Session) -> int:
    """A push of the first model that waits; its number."""
    model = session.scalars(select(LanguageModel).order_by(LanguageModel.id)).first()
    assert model is not None
    name = model.name
    spec = PublicationSpec.read({"model": name, "to": "lab/learner", "licence": "mit"})
    row = PUBLICATION.new_row(
        queued=True, spec=spec.to_json(), language_model_id=model.id, name=name, target=spec.to, licence="mit", size=1,
        files=1, lease_count=0,
    )  # fmt: skip
    session.add(row)
    session.flush()
    return int(row.id)
