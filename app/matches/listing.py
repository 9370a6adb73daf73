"""The list of matches: the latest first, or sorted by any column that the database can order by."""

from typing import Any

from sqlalchemy import func, select

from app.core.errors import Phrase, Verbatim
from app.core.lists import NOWHERE, ListColumn, Listing, Reference, State, attribute, job_cell
from app.matches.figures import FIGURES
from app.matches.overview import ListedPlayer, MatchListItem, match_items
from app.models import LanguageModel, MatchRow, SeatRow
from app.registry import PERSON
from app.registry.listing import game_cell

OVER = "over"
HIDDEN = Phrase("hidden until its wave is frozen")
_MARKS = {"aborted": "bad", "resigned": "warn", "timeout": "warn", "abandoned": "warn"}  # by outcome


def player_cell(player: ListedPlayer) -> Phrase | Verbatim:
    """The player in a seat."""
    return Phrase(PERSON) if player.model is None else Verbatim(player.model)


def _player_cells(line: MatchListItem) -> list[Phrase | str]:
    """The player in each seat, with the role in games whose seats differ; hidden for a blinded match."""
    if line.blinded:
        return [HIDDEN]
    several = len({player.role for player in line.players}) > 1
    names = [*map(player_cell, line.players)]
    return [
        Phrase("%(player)s, %(role)s", player=name, role=Phrase(player.role)) if several else name
        for name, player in zip(names, line.players, strict=True)
    ]


def _source(line: MatchListItem) -> list[Phrase | Reference]:
    """Where a match comes from: its source, its study, and its round with the match's index there, if any."""
    found: list[Phrase | Reference] = [Phrase(line.match.source)]
    if line.study:
        found.append(Phrase("study %(name)s", name=Verbatim(line.study)))
    if line.match.round_id is not None:
        number = line.match.round_id
        found.append(job_cell("round", number, line.round_name, Phrase("round %(number)s", number=number)))
        found.append(Phrase("match %(index)s", index=line.match.index))
    return found


def _match_state(line: MatchListItem) -> State:
    if line.blinded:
        return State(line.match.status, "open" if line.match.status == OVER else "good")
    if line.match.status != OVER or line.match.reason is None:
        return State(line.match.status, "good")
    return State(line.match.reason, _MARKS.get(line.match.reason, ""))


def scores_of(line: MatchListItem) -> tuple[float | None, float | None]:
    """Both seats' scores; None for a blinded match."""
    return (None, None) if line.blinded else (line.match.utility_0, line.match.utility_1)


def _lower(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else min(first, second)


def _player(seat: int) -> Any:
    """The player in a seat of each match, as an SQL expression."""
    name = select(func.coalesce(LanguageModel.name, SeatRow.player, PERSON)).select_from(SeatRow)
    named = name.outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
    return named.where(SeatRow.match_id == MatchRow.id, SeatRow.seat == seat).scalar_subquery()


LIST: Listing[MatchRow] = Listing(
    name="matches",
    table=MatchRow,
    columns=(
        ListColumn(
            "match",
            Phrase("Match"),
            lambda line: Reference("match", line.match.id, line.match.id, line.match.id[:8]),
            sort=MatchRow.id,
        ),
        ListColumn("game", Phrase("Game"), lambda line: game_cell(line.match.game), sort=MatchRow.game),
        ListColumn("players", Phrase("Players"), _player_cells, sort=_player(0) + ", " + _player(1)),
        ListColumn("source", Phrase("Source"), _source, sort=MatchRow.source),
        ListColumn("state", Phrase("State"), _match_state, sort=MatchRow.reason),
        ListColumn(
            "scores",
            Phrase("Scores"),
            lambda line: [each for each in scores_of(line) if each is not None],
            sort=MatchRow.utility_0 + MatchRow.utility_1,
            numeric=True,
            type="text",
        ),
        ListColumn(
            "lower_score",
            Phrase("Lower score"),
            lambda line: _lower(*scores_of(line)),
            sort=FIGURES["lower_score"],
            numeric=True,
            seen=NOWHERE,
        ),
        ListColumn("moves", Phrase("Moves"), lambda line: line.match.ply, sort=MatchRow.moves, numeric=True),
        ListColumn(
            "refused",
            Phrase("Refused"),
            lambda line: line.match.violations or None,
            sort=MatchRow.refused,
            numeric=True,
        ),
        ListColumn(
            "lenient_moves",
            Phrase("Read leniently"),
            lambda line: line.match.lenient_moves or None,
            sort=MatchRow.lenient_moves,
            numeric=True,
            seen=NOWHERE,
        ),
        attribute(MatchRow.words, Phrase("Words"), numeric=True, seen=NOWHERE),
        attribute(MatchRow.started_at, Phrase("Began, UTC"), numeric=True),
        attribute(MatchRow.ended_at, Phrase("Ended, UTC"), numeric=True, seen=NOWHERE),
    ),
    items=match_items,
    key=MatchRow.started_at,
)
