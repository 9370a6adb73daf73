"""A push: its files are collected and checked beforehand, and again just before they are sent. Nothing here commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase
from app.datasets.store import find_dataset
from app.jobs.holding import hold
from app.jobs.kind import Requester
from app.models import Dataset, LanguageModel, Publication
from app.publication.bundle import Bundle, bundle_of_dataset, bundle_of_model
from app.publication.card import dataset_card, model_card
from app.publication.job import PUBLICATION
from app.publication.licences import warnings
from app.publication.release import Release, check_allowed, release_of_dataset, release_of_model
from app.publication.spec import PublicationSpec
from app.registry import get_model


@dataclass(frozen=True, slots=True)
class PlannedPush:
    """What a push would publish: the row, its files, what it was made from, and warnings to check first."""

    row: LanguageModel | Dataset
    bundle: Bundle
    release: Release
    warnings: Sequence[Phrase]

    @property
    def name(self) -> str:
        """The name: NAME of a model, NAME@VERSION of a dataset."""
        return self.row.name if isinstance(self.row, LanguageModel) else self.row.reference


def plan(session: Session, home: Path, spec: PublicationSpec) -> PlannedPush:
    """What a push would send. Reads all of its files.

    Raises NotFound for what does not exist, Invalid for files that were changed or can run code, and Conflict if a
    person's consent or a declared licence is missing.
    """
    link = spec.licence_link or ""
    if spec.model is not None:
        model = get_model(session, spec.model)
        release = release_of_model(session, model)
        check_allowed(release, model.name, "model")
        bundle = bundle_of_model(home, model, model_card(session, home, model, spec.licence, link))
        return PlannedPush(model, bundle, release, warnings(spec.licence, release.inherited))
    dataset = find_dataset(session, spec.dataset or "")
    release = release_of_dataset(session, dataset)
    check_allowed(release, dataset.reference, "dataset")
    bundle = bundle_of_dataset(home, dataset, dataset_card(session, dataset, spec.licence, link))
    return PlannedPush(dataset, bundle, release, warnings(spec.licence, release.inherited))


def check_again(session: Session, planned: PlannedPush) -> None:
    """Raises Conflict if it may no longer be published, or holds games of other people than when it was planned."""
    if isinstance(planned.row, LanguageModel):
        found = release_of_model(session, session.get_one(LanguageModel, planned.row.id))
    else:
        found = release_of_dataset(session, session.get_one(Dataset, planned.row.id))
    check_allowed(found, planned.name)
    if found.participants != planned.release.participants:
        expected = Phrase("the people that it was planned with")
        raise Conflict("publication", expected=expected, got=Phrase("others"), remedy=Phrase("try again"))


def create(
    session: Session, spec: PublicationSpec, planned: PlannedPush, *, queued: bool, requester: Requester | None = None
) -> Publication:
    """Store a waiting push, for workers if it is `queued`, else for the caller."""
    number = planned.row.id
    hold(session, [session.get_one(type(planned.row), number)])
    row = PUBLICATION.new_row(
        queued=queued,
        requester=requester,
        spec=spec.to_json(),
        language_model_id=number if isinstance(planned.row, LanguageModel) else None,
        dataset_id=number if isinstance(planned.row, Dataset) else None,
        name=planned.name,
        target=str(spec.place),
        licence=spec.licence,
        size=planned.bundle.size,
        files=len(planned.bundle.files),
        lease_count=0,
    )
    session.add(row)
    session.flush()
    return row
