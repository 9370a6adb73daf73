"""The page of a round: what is played, by whom, on what material, and its cost so far."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.lists import COMMANDS, PAGES
from app.games.base import JSON
from app.jobs.page import ASKED, JobPage, Section, fact, json_fact
from app.models import RoundMaterial, RoundRow
from app.models.types import list_length
from app.registry.listing import game_cell
from app.rounds.job import ROUND
from app.rounds.listing import RoundListItem, list_items, waits_behind
from app.rounds.prices import prices_of_round
from app.rounds.progress import figures, mean_pace
from app.rounds.returned_models import changes

_COUNTS = (
    "matches", "finished", "aborted", "moves", "violations", "lenient_moves", "calls", "failed_calls",
    "prompt_tokens", "completion_tokens", "estimated_tokens",
)  # fmt: skip
_ORDERS = {
    "in-order": Phrase("of the list"), "shuffled": Phrase("shuffled, each once"),
    "random": Phrase("drawn for each match"),
}  # fmt: skip


def figures_of(session: Session, rows: Sequence[RoundRow]) -> dict[int, JSON]:
    """The progress of each round at its mean pace, by its number."""
    now, states = datetime.now(UTC), ROUND.states_of(session, rows)
    return {row.id: figures(row, states[row.id], mean_pace(row, now), prices_of_round(session, row)) for row in rows}


def _material_of_rounds(session: Session, items: Sequence[RoundListItem]) -> list[Phrase | None]:
    """The source and number of pieces of each round's material."""
    numbers = [each.row.id for each in items]
    columns = RoundMaterial.round_id, RoundMaterial.source, list_length(RoundMaterial.items)
    known = {
        number: Phrase("%(count)s from %(source)s", count=count, source=Verbatim(source))
        for number, source, count in session.execute(select(*columns).where(RoundMaterial.round_id.in_(numbers)))
    }
    return [known.get(number) for number in numbers]


def _costs(session: Session, items: Sequence[RoundListItem]) -> list[float | None]:
    found = figures_of(session, [each.row for each in items])
    return [found[each.row.id]["cost"] for each in items]


def _behind(session: Session, items: Sequence[RoundListItem]) -> list[list[int]]:
    found = waits_behind(session, [each.row for each in items])
    return [found[each.row.id] for each in items]


def _settings_of_round(item: RoundListItem) -> JSON:
    return {name: value for name, value in item.row.config.items() if name not in ("counts", "values")}


def _changed_models(item: RoundListItem) -> list[Phrase] | None:
    numbers = [number for number in (item.row.model_0_id, item.row.model_1_id) if number is not None]
    return changes(item.row.returned_models, dict(zip(numbers, item.models, strict=True))) or None


_ASKED = (
    fact("name", "Name"),
    fact("game", "Game", lambda each: game_cell(each.row.game)),
    fact("models", "Models", lambda each: [*each.models], none=Phrase("imported players")),
    fact("rules", "Settings", _settings_of_round, seen=PAGES),
    fact("material", "Material", values=_material_of_rounds, seen=PAGES, none=Phrase("generated from the seed")),
    fact("order", "In the order", lambda each: _ORDERS.get(each.row.pick, each.row.pick), seen=PAGES),
    fact("swap_seats", "Seats swapped"),
    fact("sampling", "Sampling", none=Phrase("each model’s own")),
    fact("seed", "Seed", digits="0"),
    fact("changed_models", "Changed", _changed_models, seen=COMMANDS),
    fact("all_aborted", "All aborted", lambda each: each.all_aborted, seen=COMMANDS),
    fact("waits_behind", "Waits behind", values=_behind, seen=COMMANDS),
    *(fact(name, name, seen=COMMANDS) for name in _COUNTS),
    *map(json_fact, ("config", "pick", "matrix_id", "retry_at")),
)
PAGE: JobPage[RoundRow] = JobPage(
    kind=ROUND,
    items=list_items,
    figures=figures_of,
    sections=[
        Section(ASKED, "What is played", _ASKED),
        Section("spent", "Cost", [fact("cost", "Cost", values=_costs, seen=COMMANDS)], alone=True),
    ],
)
