"""The list of the registry's models, in order of registration, with the number of matches that each has played."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import selectinload

from app.core.errors import Phrase, Verbatim
from app.core.lists import COMMANDS, NOWHERE, PAGES, ListColumn, Listing, Reference, attribute, computed, start_of_json
from app.jobs.tags import MODEL, tag_columns
from app.matches.counts import matches_over_of
from app.matches.filter import REHEARSAL
from app.matches.overview import OPEN
from app.models import LanguageModel, MatchRow, SeatRow
from app.players.local.serving import NAMES, SERVER, in_words
from app.registry.adapters import engine_of
from app.registry.listing import game_cell
from app.registry.prices import own_prices


class ModelListItem(NamedTuple):
    """A model in a list."""

    row: LanguageModel


def matches_of(model_id: Any) -> Any:
    """The number of a model's matches as an SQL expression, without those of bots and previews, as in the list of
    matches that a page links to.
    """
    # Unfinished matches are found by their status, as they are few, and not by the model.
    under_way = (
        select(func.count(SeatRow.match_id.distinct()))
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(MatchRow.status.in_(OPEN), MatchRow.source != REHEARSAL)
        .where(func.coalesce(SeatRow.language_model_id, 0) == model_id)
        .scalar_subquery()
    )
    return matches_over_of(model_id) + under_way


def used_for(row: LanguageModel) -> Phrase:
    """What a model is used for."""
    rounds, people = Phrase("rounds"), Phrase("people")
    uses = [each for each, on in ((rounds, row.usable_in_rounds), (people, row.offered_to_people)) if on]
    if not row.games and row.archived_at is None:
        return Phrase("societies")
    if len(uses) > 1:
        return Phrase("%(one)s and %(other)s", one=uses[0], other=uses[1])
    return uses[0] if uses else Phrase("nothing") if row.archived_at is None else Phrase("nothing (archived)")


def server_of(row: LanguageModel) -> Phrase | None:
    """The engine that serves or served a local model, its state, and whether the model plays through it; None without
    one.
    """
    served = engine_of(row)
    if served is None:
        return None
    how = in_words(served, datetime.now(UTC))
    if row.play_with == SERVER:
        return Phrase("%(engine)s %(how)s, and plays", engine=NAMES[served.engine], how=how)
    return Phrase("%(engine)s %(how)s", engine=NAMES[served.engine], how=how)


def _price(name: str, title: Phrase) -> ListColumn:
    """A price of a model, in US dollars per million tokens."""
    return ListColumn(name, title, lambda each: own_prices(each.row).get(name), numeric=True, seen=NOWHERE)


LIST: Listing[LanguageModel] = Listing(
    name="models",
    table=LanguageModel,
    columns=(
        ListColumn(
            "name",
            Phrase("Name"),
            lambda each: Reference("model", each.row.id, each.row.name),
            sort=LanguageModel.name,
            notes=lambda each: [
                Verbatim("API") if each.row.kind == "api" else Phrase(each.row.kind),
                Verbatim(each.row.prompt_style or ""),
            ],
        ),
        ListColumn("model_id", Phrase("Number"), lambda each: each.row.id, numeric=True, seen=NOWHERE),
        attribute(LanguageModel.usable_in_rounds, Phrase("Usable in rounds"), seen=PAGES),
        attribute(LanguageModel.offered_to_people, Phrase("Offered to people"), seen=PAGES),
        ListColumn(
            "test_call",
            Phrase("Test call"),
            lambda each: each.row.test_request and each.row.test_request.result is not None,
            seen=PAGES,
        ),
        attribute(LanguageModel.label, Phrase("Participants see")),
        attribute(LanguageModel.kind, Phrase("Kind"), seen=COMMANDS),
        ListColumn(
            "games",
            Phrase("Plays"),
            lambda each: [game_cell(name) for name in each.row.games],
            sort=start_of_json(LanguageModel.games),
        ),
        ListColumn("for", Phrase("Used for"), lambda each: used_for(each.row), seen=COMMANDS),
        ListColumn("server", Phrase("Server"), lambda each: server_of(each.row), seen=COMMANDS),
        computed(
            "matches",
            Phrase("Matches"),
            matches_of(LanguageModel.id),
            numeric=True,
            seen=PAGES,
        ),
        _price("price_in", Phrase("Price of tokens in")),
        _price("price_out", Phrase("Price of tokens out")),
        _price("price_cached", Phrase("Price of cached tokens in")),
        _price("price_cache_write", Phrase("Price of tokens put into the cache")),
        _price("price_reasoning", Phrase("Price of reasoning tokens")),
        attribute(LanguageModel.created_at, Phrase("Since, UTC"), numeric=True, seen=PAGES),
        *tag_columns(MODEL),
    ),
    items=lambda _session, rows: [ModelListItem(row) for row in rows],
    start=lambda: select(LanguageModel).options(selectinload(LanguageModel.test_request)),
    descending=False,
)
