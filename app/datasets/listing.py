"""The list of datasets, the latest first, each with its origin."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func
from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.lists import (
    COMMANDS,
    NOWHERE,
    Labelled,
    ListColumn,
    Listing,
    Reference,
    attribute,
    computed,
    job_cell,
    of_other,
)
from app.datasets.spec import DatasetRequestSpec
from app.datasets.store import LATEST_FIRST
from app.jobs.page import job_references
from app.jobs.spec import fields_of
from app.jobs.tags import DATASET, tag_columns
from app.models import Dataset, RoundRow
from app.rounds.job import ROUND

JSON = dict[str, Any]
_ROUNDS = 6  # named per line
_KEPT = {
    **{name: Phrase(label) for name, label in fields_of(DatasetRequestSpec)["filter"]["labels"].items()},
    "conversations": Phrase("Conversations"), "comparisons": Phrase("Comparisons"),
}  # fmt: skip


class DatasetListItem(NamedTuple):
    """A dataset in a list."""

    row: Dataset

    @property
    def is_cut(self) -> bool:
        """Whether it was built from matches."""
        return "filter" in self.row.spec


def origins_of(session: Session, rows: Sequence[Dataset]) -> list[list[Phrase | Reference]]:
    """The origin of each dataset; of many rounds only the first ones."""
    numbers = {number for row in rows for number in row.spec.get("rounds", ())[:_ROUNDS]}
    cells = job_references(session, ROUND, numbers)
    return [_origin_of_spec(row.spec, cells) for row in rows]


def society_origin(society: JSON) -> Reference:
    """The society that a dataset was built from, as its spec records it."""
    number = society["society_id"]
    return job_cell("society", number, society["name"], Phrase("society %(number)s", number=number))


def _origin_of_spec(spec: JSON, cells: Mapping[int, Reference]) -> list[Phrase | Reference]:
    if imported := spec.get("imported"):
        return [Phrase("the file %(file)s", file=Verbatim(imported["file"]))]
    if society := spec.get("society"):
        return [society_origin(society)]
    if best := spec.get("best_of"):
        words = Phrase("the best responses of %(dataset)s", dataset=Verbatim(best["dataset"]))
        return [Reference("dataset", best["dataset_id"], words)]
    rounds = spec["rounds"]
    if not rounds:
        chosen = spec.get("matches") or {}
        named = chosen.get("source") or chosen.get("match")
        return [Phrase("chosen matches") if named else Phrase("matches outside rounds")]
    more = len(rounds) - _ROUNDS
    return [
        *(cells[number] for number in rounds[:_ROUNDS]),
        *([Phrase("and %(count)s more", count=more)] if more > 0 else []),
    ]


def _filter_or_kind(each: DatasetListItem) -> Labelled:
    name = each.row.spec["filter"] if each.is_cut else each.row.kind
    return Labelled(name, _KEPT.get(name, Phrase(name)))


_ORIGIN = func.coalesce(
    Dataset.spec["imported"]["file"].as_string(),
    Dataset.spec["society"]["name"].as_string(),
    Dataset.spec["best_of"]["dataset"].as_string(),
    of_other(RoundRow.name, RoundRow.id == Dataset.spec["rounds"][0].as_integer()),
)

LIST: Listing[Dataset] = Listing(
    name="datasets",
    table=Dataset,
    columns=(
        ListColumn(
            "name",
            Phrase("Dataset"),
            lambda each: Reference("dataset", each.row.id, each.row.name),
            sort=Dataset.name,
            notes=lambda each: [
                Phrase("version %(version)s", version=each.row.version),
                *([Phrase("unusable")] if each.row.unusable_at else []),
                *([Phrase("removed")] if each.row.removed_at else []),
            ],
        ),
        attribute(Dataset.id, Phrase("Number"), "dataset_id", numeric=True, seen=COMMANDS),
        attribute(Dataset.version, Phrase("Version"), numeric=True, seen=COMMANDS),
        ListColumn(
            "origin",
            Phrase("From"),
            values=lambda session, items: origins_of(session, [each.row for each in items]),
            sort=_ORIGIN,
        ),
        ListColumn(
            "kept",
            Phrase("Kept"),
            _filter_or_kind,
            sort=func.coalesce(Dataset.spec["filter"].as_string(), Dataset.kind),
        ),
        attribute(Dataset.rows, Phrase("Rows"), numeric=True),
        computed(
            "matches",
            Phrase("Matches"),
            Dataset.figures["matches"].as_integer(),
            lambda each, matches: matches or (0 if each.is_cut else None),  # uncut datasets may have none
            numeric=True,
        ),
        attribute(Dataset.words, Phrase("Words"), numeric=True),
        ListColumn("sha256", Phrase("SHA-256"), lambda each: each.row.sha256, seen=NOWHERE),
        attribute(Dataset.unusable_at, Phrase("Unusable since, UTC"), "unusable_since", numeric=True, seen=COMMANDS),
        attribute(Dataset.created_at, Phrase("Created, UTC"), numeric=True),
        *tag_columns(DATASET),
    ),
    items=lambda _session, rows: [DatasetListItem(row) for row in rows],
    start=lambda: LATEST_FIRST,
)
