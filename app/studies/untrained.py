"""Checks that no model of a study was trained on the material that people play on there."""

from collections.abc import Collection, Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.datasets.removed import removed_rounds
from app.finetuning.listing import datasets_of
from app.jobs.page import job_references
from app.matches.held_out import is_on, piece_key
from app.models import DatasetRow, LanguageModel, MatchRow, StudyVersion, TrainingJob
from app.rounds.job import ROUND
from app.studies.checks import MODEL
from app.studies.design import StudyDesign
from app.studies.store import models_of

_AT_ONCE = 5_000  # matches in memory


def check_untrained(session: Session, version: StudyVersion, design: StudyDesign) -> None:
    """Raises Invalid if a partner, or a model it was made from, learned from a match on the study's material.

    For rows that were made elsewhere, the material is unknown.
    """
    if design.material is None or not design.material.held_out:
        return
    keys = frozenset(piece_key(design.game, piece) for piece in version.design["material"])
    partners = {str(level) for level in design.levels(MODEL).values()}
    for name, model in models_of(session, version).items():
        if name not in partners:
            continue
        datasets = set(_datasets(session, model))
        if gone := removed_rounds(session, datasets):
            of = job_references(session, ROUND, gone)[gone[0]]
            raise Invalid(
                "of",
                expected=Phrase("models whose training data is known"),
                got=Phrase("%(name)s, which learned from %(round)s, which was removed", name=name, round=of.words),
                remedy=Phrase("put that round back, or set held_out: false"),
            )
        count = _learned_on(session, datasets, design.game, keys)
        if count:
            raise Invalid(
                "of",
                expected=Phrase("models that were trained on none of the study's material"),
                got=Phrase("%(name)s, which learned from %(count)s matches on it", name=name, count=count),
                remedy=Phrase("take other material, or set held_out: false"),
            )


def _datasets(session: Session, model: LanguageModel) -> Iterator[int]:
    """The datasets that a model learned from, including those of its base and of the model it is a copy of."""
    wanted, seen = [model], {model.id}
    while wanted:
        each = wanted.pop()
        job = session.scalar(select(TrainingJob).where(TrainingJob.model_id == each.id))
        if job is not None:
            yield from datasets_of(job)
        for number in (each.cloned_from_id, job.base_id if job is not None else None):
            if number is not None and number not in seen:
                seen.add(number)
                wanted.append(session.get_one(LanguageModel, number))


def _learned_on(session: Session, datasets: Collection[int], game: str, keys: Collection[str]) -> int:
    """How many matches of the datasets were played on one of the pieces."""
    matches = select(DatasetRow.match_id).where(DatasetRow.dataset_id.in_(datasets)).distinct()
    configs = select(MatchRow.config).where(MatchRow.id.in_(matches), MatchRow.game == game)
    found = session.scalars(configs, execution_options={"yield_per": _AT_ONCE})
    return sum(is_on(game, config, keys) for config in found)
