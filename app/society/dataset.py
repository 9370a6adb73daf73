"""A society's interactions as datasets: one of comparisons, and one of conversations that are mixed into a training.

Both have the society in their spec. The same interactions, mixing ratio and seed give the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, either
from app.core.extensions import Transact
from app.datasets import register
from app.datasets.import_tally import ImportTally
from app.datasets.importers.training_rows import FORMATS
from app.datasets.row_files import RawRow
from app.datasets.store import UnregisteredDataset, write_file
from app.games.base import JSON
from app.models import Society
from app.society import store
from app.society.comparisons import IMITATION, MIXING, REALIGNMENT, RELEASED, SELF_CRITICISM, rated_rows
from app.society.job import SOCIETY
from app.society.statistics import DataFigures, data_figures

_NAME = 80  # characters of a dataset's name, at most
_REALIGNED = f", {REALIGNMENT}"


@dataclass(frozen=True, slots=True)
class SocietyDatasets:
    """The datasets of a society, to be registered, and their figures. `realignment` is None if it has no rows."""

    comparisons: UnregisteredDataset
    realignment: UnregisteredDataset | None
    figures: Sequence[DataFigures]


def build(session: Session, home: Path, number: int, mixing: str = RELEASED, seed: int = 0) -> SocietyDatasets:
    """Write the rows of a society into dataset files; for one still running, those of its interactions so far.

    Raises NotFound, Invalid for a mixing ratio that does not exist, and for a society without a rated answer.
    """
    if mixing not in MIXING:
        raise Invalid("mixing", expected=either(MIXING), got=mixing)
    row = SOCIETY.get(session, number)
    interactions = list(store.read_interactions(session, number))
    data = rated_rows(interactions, MIXING[mixing], seed)
    if not data.comparisons:
        raise Invalid(
            None,
            expected=Phrase("an answer with a rating from 1 to 7"),
            got=Phrase("none in %(count)s interactions", count=len(interactions)),
            remedy=Phrase("`flask society show %(number)s` says what its observers gave", number=number),
            subject=SOCIETY.subject(number),
        )
    figures = data_figures(data)
    about: JSON = {"society_id": number, "name": row.name, "interactions": len(interactions), "mixing": mixing,
                   "seed": seed, "agents": _member_model_names(row.agents),
                   "observers": _member_model_names(row.observers)}  # fmt: skip
    comparisons = _write_dataset(home, data.comparisons, about, [IMITATION, SELF_CRITICISM], figures)
    if not data.realignment:
        return SocietyDatasets(comparisons, None, figures)
    realignment = _write_dataset(home, data.conversations, about, [REALIGNMENT], figures)
    return SocietyDatasets(comparisons, realignment, figures)


def register_both(
    transact: Transact,
    found: SocietyDatasets,
    name: str,
    enter: Callable[[Transact, UnregisteredDataset, str], int] = register.save,
) -> tuple[int, int | None]:
    """Register a society's datasets by `enter`, maybe `register.add`. Returns their numbers; raises as it does.

    If the comparisons are refused, neither file is kept.
    """
    with register.discarded_on_error(transact, found.realignment):
        comparisons = enter(transact, found.comparisons, name)
    if found.realignment is None:
        return comparisons, None
    return comparisons, enter(transact, found.realignment, realignment_name(name))


def default_name(row: Society) -> str:
    """The default name for the dataset of a society."""
    return f"society {row.id} {row.name}"[:_NAME].strip()


def realignment_name(name: str) -> str:
    """The name of the conversation dataset that accompanies the comparison dataset."""
    return f"{name[: _NAME - len(_REALIGNED)]}{_REALIGNED}"


def _write_dataset(
    home: Path, rows: Sequence[JSON], about: JSON, row_types: Sequence[str], figures: Sequence[DataFigures]
) -> UnregisteredDataset:
    tally = ImportTally(FORMATS["parlor"])

    def lines() -> Iterator[bytes]:
        yield from tally.lines(RawRow(number, row) for number, row in enumerate(rows, 1))
        if tally.refused:
            raise tally.refused[0].error.at(f"row {tally.refused[0].number}")

    found = tally.draft(write_file(home, lines(), tally), {}, set())
    return replace(
        found,
        spec={"society": {**about, "types": list(row_types)}, "rounds": [], "prompts": {}, "style": None},
        figures={**found.figures, "society": [_figures_json(each) for each in figures if each.row_type in row_types]},
    )


def _figures_json(each: DataFigures) -> JSON:
    tally = each.tally
    return {
        "type": each.row_type,
        "model": each.model,
        "found": tally.found,
        "kept": tally.kept,
        "rating": tally.mean_rating,
        "dropped": dict(tally.dropped),
    }


def _member_model_names(models: Sequence[JSON]) -> list[str]:
    return [each["model"] for each in models]
