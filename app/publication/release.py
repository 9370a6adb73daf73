"""Whether a model or a dataset may be published: checks everything that it was made from. Only reads.

People's text, or weights that learned from it, may be published only if everybody in the match agreed. That holds
through every step: bases, references and adapters, clones, datasets made from other datasets, and models whose words a
dataset holds, because a model that learns from them learns from what these have learned. What came from elsewhere needs
a licence that an experimenter has declared for it (`permissions.py`).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased, defer

from app.core.errors import Conflict, Phrase, Verbatim
from app.datasets.removed import removed_rounds
from app.finetuning.config import REFERENCE
from app.finetuning.listing import datasets_of
from app.jobs.page import job_references
from app.lineage import ADDED, origin_of
from app.models import (
    Consent,
    Dataset,
    DatasetRow,
    Enrolment,
    LanguageModel,
    MatchRow,
    Participant,
    ReleasePermission,
    SeatRow,
    Society,
    Study,
    TrainingJob,
)
from app.registry import PERSON
from app.rounds.job import ROUND
from app.studies.consents import PUBLICATION

IMPORTED = "import"  # the source of matches played elsewhere


class PeopleCount(NamedTuple):
    """Matches with people that something was made from: those of a study, or, with None, those of guests and
    visitors.
    """

    study: str | None
    matches: int
    agreed: int  # those in which everybody agrees to publication now


class Inherited(NamedTuple):
    """The licence of something from elsewhere that what is published contains."""

    name: str
    licence: str


@dataclass(frozen=True, slots=True)
class Release:
    """What a model or a dataset was made from, and the reasons against publishing it, one line each.

    models, datasets: all of its lineage, itself included. sources: matches by their source. people: whose games are in
    it. services: models behind an API whose words are in it. incomplete: a part of the lineage is gone.
    """

    models: Sequence[LanguageModel]
    datasets: Sequence[Dataset]
    sources: Mapping[str, int]
    people: Sequence[PeopleCount]
    participants: Collection[int]
    inherited: Sequence[Inherited]
    services: Sequence[str]
    refusals: Sequence[Phrase]

    @property
    def is_allowed(self) -> bool:
        """Whether there is no reason against publishing it."""
        return not self.refusals


def release_of_model(session: Session, row: LanguageModel) -> Release:
    """What a model was made from, and the reasons against publishing its weights."""
    refusals = []
    if row.kind != "local":
        refusals.append(Phrase("a model without weights here; only a local model can be published"))
    return _release(session, {row.id}, set(), refusals)


def release_of_dataset(session: Session, row: Dataset) -> Release:
    """What a dataset was made from, and the reasons against publishing its rows."""
    return _release(session, set(), {row.id}, [])


def check_allowed(found: Release, name: str, field: str = "publication") -> None:
    """Raises Conflict with the first reason against publishing it, and the number of further ones."""
    if found.is_allowed:
        return
    first, *others = found.refusals
    more = Phrase("%(first)s; and %(count)s more", first=first, count=len(others)) if others else first
    raise Conflict(
        field,
        expected=Phrase("one that may be published"),
        got=more,
        subject=Verbatim(name),
    )


def _release(session: Session, models: set[int], datasets: set[int], refusals: list[Phrase]) -> Release:
    lineage = _Lineage(session)
    lineage.follow(models, datasets)
    rows, data = lineage.rows, lineage.datasets
    sources, people, participants = _matches(session, [each.id for each in data])
    permissions = _permissions(session, rows, data)
    refusals += lineage.gone
    refusals += _of_people(people)
    refusals += _of_withdrawn(data)
    refusals += _of_elsewhere(rows, data, lineage, sources, permissions)
    licences = {(each.name, each.licence): each for each in permissions.values()}
    return Release(
        models=rows,
        datasets=data,
        sources=dict(sorted(sources.total.items())),
        people=people,
        participants=participants,
        inherited=[licences[key] for key in sorted(licences)],
        services=sorted(each.name for each in rows if each.kind == "api"),
        refusals=refusals,
    )


# ---- What it was made from ---------------------------------------------------------


class _Lineage:
    """All models and datasets that something was made from, each once, in the order of their numbers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._models: dict[int, LanguageModel] = {}
        self._datasets: dict[int, Dataset] = {}
        self.trained: set[int] = set()  # models made by a job here
        self.gone: list[Phrase] = []

    @property
    def rows(self) -> list[LanguageModel]:
        return [self._models[number] for number in sorted(self._models)]

    @property
    def datasets(self) -> list[Dataset]:
        return [self._datasets[number] for number in sorted(self._datasets)]

    def follow(self, models: set[int], datasets: set[int]) -> None:
        """Add these, and all that they were made from."""
        while models or datasets:
            further = _Found(set(), set())
            for row in self._session.scalars(select(LanguageModel).where(LanguageModel.id.in_(models))):
                self._models[row.id] = row
                further.models.update(each for each in (row.cloned_from_id, row.adapter_base_id) if each is not None)
            made = select(TrainingJob).where(TrainingJob.model_id.in_(models)).options(defer(TrainingJob.log))
            for job in self._session.scalars(made):
                self._follow_job(job, further)
            for data in self._session.scalars(select(Dataset).where(Dataset.id.in_(datasets))):
                self._datasets[data.id] = data
                self._follow_spec(data, further)
            self._follow_rows(datasets, further)
            models, datasets = further.models - set(self._models), further.datasets - set(self._datasets)

    def _follow_job(self, job: TrainingJob, further: "_Found") -> None:
        self.trained.add(job.model_id or 0)
        further.datasets.update(datasets_of(job))
        if job.base_id is not None:
            further.models.add(job.base_id)
        if (name := job.config.get(REFERENCE)) is not None:
            self._follow_named([name], further)

    def _follow_spec(self, row: Dataset, further: "_Found") -> None:
        """A dataset's sources other than matches: a society, or another dataset; and datasets with the same bytes,
        because a file that was imported again holds what it held before.
        """
        same = select(Dataset.id).where(Dataset.sha256 == row.sha256)
        further.datasets.update(self._session.scalars(same))
        if (best := row.spec.get("best_of")) is not None:
            further.datasets.add(best["dataset_id"])
        name = Verbatim(row.reference)
        rounds = job_references(self._session, ROUND, removed_rounds(self._session, [row.id]))
        self.gone += [
            Phrase("dataset %(name)s: %(round)s, which it has rows of, was removed", name=name, round=each.words)
            for each in rounds.values()
        ]
        if (society := row.spec.get("society")) is not None:
            found = self._session.get(Society, society["society_id"])
            if found is None:
                self.gone.append(Phrase("dataset %(name)s: its society is gone", name=Verbatim(row.reference)))
            else:
                further.models.update(each["model_id"] for each in (*found.agents, *found.observers))

    def _follow_rows(self, datasets: Collection[int], further: "_Found") -> None:
        """The models that played in the matches of datasets: their words, and what they were told, are in the rows."""
        sat = (
            select(SeatRow.language_model_id)
            .join(DatasetRow, DatasetRow.match_id == SeatRow.match_id)
            .where(DatasetRow.dataset_id.in_(datasets), SeatRow.language_model_id.is_not(None))
            .distinct()
        )
        further.models.update(number for number in self._session.scalars(sat) if number is not None)

    def _follow_named(self, names: Iterable[str], further: "_Found") -> None:
        for name in names:
            number = self._session.scalar(select(LanguageModel.id).where(LanguageModel.name == name))
            if number is None:
                self.gone.append(Phrase("model %(name)s, which it was trained with, is gone", name=Verbatim(name)))
            else:
                further.models.add(number)


class _Found(NamedTuple):
    models: set[int]
    datasets: set[int]


class _Sources(NamedTuple):
    """The number of matches by source, of all datasets together, and the number of imported ones in each dataset."""

    total: Mapping[str, int]
    imported: Mapping[int, int]


# ---- Whose games are in it -----------------------------------------------------------


def _matches(session: Session, datasets: Collection[int]) -> tuple[_Sources, list[PeopleCount], set[int]]:
    """The matches of datasets by source; those with people by study, with how many may be published; and the people in
    them.
    """
    own = DatasetRow.dataset_id.in_(datasets)
    counted = (
        select(MatchRow.source, func.count(MatchRow.id.distinct()))
        .join(DatasetRow, DatasetRow.match_id == MatchRow.id)
        .where(own)
        .group_by(MatchRow.source)
    )
    total = dict(session.execute(counted).all())
    elsewhere = (
        select(DatasetRow.dataset_id, func.count(MatchRow.id.distinct()))
        .join(MatchRow, MatchRow.id == DatasetRow.match_id)
        .where(own, MatchRow.source == IMPORTED)
        .group_by(DatasetRow.dataset_id)
    )
    enrolled = aliased(Enrolment)
    person = func.coalesce(SeatRow.participant_id, enrolled.participant_id)
    seats = (
        select(SeatRow.match_id, SeatRow.training_consent, MatchRow.erased_at, person, Study.name)
        .join(DatasetRow, DatasetRow.match_id == SeatRow.match_id)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .outerjoin(enrolled, enrolled.id == SeatRow.enrolment_id)
        .outerjoin(Participant, Participant.id == person)
        .outerjoin(Study, Study.id == Participant.study_id)
        .where(own, SeatRow.kind == PERSON, MatchRow.source != IMPORTED)
        .distinct()
    )
    agreeing = _who_agrees(session)
    allowed: dict[str, bool] = defaultdict(lambda: True)
    study_of: dict[str, str | None] = {}
    participants = set[int]()
    for match_id, training, erased_at, participant, study in session.execute(seats):
        agrees = bool(training) and erased_at is None and study is not None and participant in agreeing
        allowed[match_id] &= agrees
        study_of.setdefault(match_id, study)
        if participant is not None:
            participants.add(participant)
    by_study: dict[str | None, list[bool]] = defaultdict(list)
    for match_id, agrees in allowed.items():
        by_study[study_of[match_id]].append(agrees)
    people = [PeopleCount(study, len(each), sum(each)) for study, each in by_study.items()]
    found = _Sources(total, dict(session.execute(elsewhere).all()))
    return found, sorted(people, key=lambda each: (each.study is None, each.study or "")), participants


def _who_agrees(session: Session) -> set[int]:
    """The people whose latest answer about publication is a yes that they have not withdrawn."""
    latest = select(func.max(Consent.id)).where(Consent.kind == PUBLICATION).group_by(Consent.participant_id)
    given = select(Consent.participant_id).where(
        Consent.id.in_(latest), Consent.given.is_(True), Consent.withdrawn_at.is_(None)
    )
    return set(session.scalars(given))


def _of_people(people: Sequence[PeopleCount]) -> Iterator[Phrase]:
    for each in people:
        without = each.matches - each.agreed
        if without and each.study is None:
            yield Phrase("games of guests, who are never asked about publication: %(without)s", without=without)
        elif without:
            yield Phrase(
                "%(without)s of %(matches)s games of study %(study)s in which somebody has not agreed to publication or"
                " has withdrawn it",
                without=without, matches=each.matches, study=Verbatim(each.study or ""),
            )  # fmt: skip


def _of_withdrawn(datasets: Sequence[Dataset]) -> Iterator[Phrase]:
    for row in datasets:
        if row.unusable_at is not None:
            yield Phrase(
                "dataset %(name)s holds what a person withdrew on %(day)s",
                name=Verbatim(row.reference), day=Verbatim(f"{row.unusable_at:%Y-%m-%d}"),
            )  # fmt: skip


# ---- What came from elsewhere --------------------------------------------------------


def _permissions(
    session: Session, models: Sequence[LanguageModel], datasets: Sequence[Dataset]
) -> Mapping[tuple[str, int], Inherited]:
    """The latest declared licence of each model and dataset that has one, by its kind and number."""
    names = {("model", row.id): row.name for row in models} | {("dataset", row.id): row.reference for row in datasets}
    found: dict[tuple[str, int], Inherited] = {}
    for each in session.scalars(select(ReleasePermission).order_by(ReleasePermission.id)):
        key = ("model", each.language_model_id) if each.dataset_id is None else ("dataset", each.dataset_id)
        if key in names:
            found[key] = Inherited(names[key], each.licence)
    return found


def _of_elsewhere(
    models: Sequence[LanguageModel],
    datasets: Sequence[Dataset],
    lineage: _Lineage,
    sources: _Sources,
    permissions: Mapping[tuple[str, int], Any],
) -> Iterator[Phrase]:
    for row in models:
        by_hand = row.id not in lineage.trained and row.cloned_from_id is None and origin_of(row, None) == ADDED
        if row.kind == "local" and by_hand and ("model", row.id) not in permissions:
            yield Phrase(
                "model %(name)s was added by hand, under no declared licence (`flask model permit %(name)s`)",
                name=Verbatim(row.name),
            )
    for data in datasets:
        if ("dataset", data.id) in permissions:
            continue
        if (imported := data.spec.get("imported")) is not None:
            yield Phrase(
                "dataset %(name)s was imported from %(file)s, under no declared licence"
                " (`flask dataset permit %(number)s`)",
                name=Verbatim(data.reference), file=Verbatim(imported["file"]), number=data.id,
            )  # fmt: skip
        elif number := sources.imported.get(data.id):
            yield Phrase(
                "dataset %(name)s has %(count)s imported games, under no declared licence"
                " (`flask dataset permit %(number)s`)",
                name=Verbatim(data.reference), count=number, number=data.id,
            )  # fmt: skip
