"""The table of matches, for export: one row per match, with what its log says about its start and its end."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import aliased

from app.core.csv_tables import Column
from app.games import roles_of_seat
from app.games.negotiation.claims import CLAIMS_VERSION
from app.games.negotiation.rules import NEGOTIATION
from app.models import EventRow, LanguageModel, MatchRow, Participant, RoundRow, SeatRow, Study
from app.registry import PERSON


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table of the export. `statement` gives its rows in their order."""

    name: str
    columns: tuple[Column, ...]
    statement: Select[Any]


_MATCH_FIELDS = (
    "id", "round_id", "game", "config", "seed", "status", "reason", "winner", "utility_0", "utility_1", "ply",
    "violations", "agreed", "pareto_optimal", "started_at", "ended_at", "words", "tokens", "first_proposal",
    "unspoken", "lenient_moves",
)  # fmt: skip
# Matches outside rounds first, by their start; then the matches of each round by index.
IN_ORDER = (
    func.coalesce(MatchRow.round_id, 0), func.coalesce(MatchRow.index, 0), MatchRow.started_at, MatchRow.id,
)  # fmt: skip
_seats = aliased(SeatRow), aliased(SeatRow)
_models = aliased(LanguageModel), aliased(LanguageModel)
_started, _ended = aliased(EventRow), aliased(EventRow)
_person, _study = aliased(Participant), aliased(Study)  # two people in one match belong to the same study


def _select_matches() -> Select[Any]:
    own = (getattr(MatchRow, field) for field in _MATCH_FIELDS)
    place = MatchRow.index.label("place")  # rows have a method called index
    statement = (
        select(
            *own,
            MatchRow.source,
            RoundRow.swap_seats,
            _study.name.label("study"),
            _started.body.label("started"),
            _ended.body.label("ended"),
            place,
            *(each for seat in (0, 1) for each in _seat_columns(seat)),
        )
        .outerjoin(RoundRow, RoundRow.id == MatchRow.round_id)
        .outerjoin(_started, (_started.match_id == MatchRow.id) & (_started.seq == 0))
        .outerjoin(_ended, (_ended.match_id == MatchRow.id) & (_ended.kind == "ended"))
    )
    for seat, (row, model) in enumerate(zip(_seats, _models, strict=True)):
        statement = statement.outerjoin(row, (row.match_id == MatchRow.id) & (row.seat == seat))
        statement = statement.outerjoin(model, model.id == row.language_model_id)
    in_study = func.coalesce(*(row.participant_id for row in _seats))
    statement = statement.outerjoin(_person, _person.id == in_study).outerjoin(_study, _study.id == _person.study_id)
    return statement.order_by(*IN_ORDER)


def _seat_columns(seat: int) -> tuple[Any, ...]:
    row, model = _seats[seat], _models[seat]
    return (
        row.role.label(f"role_{seat}"),
        row.kind.label(f"kind_{seat}"),
        func.coalesce(model.name, row.player).label(f"model_{seat}"),
    )


def player_of(kind: str | None, model: str | None) -> str | None:
    return PERSON if kind == PERSON else model


def _swapped(row: Any) -> bool | None:
    return None if row.swap_seats is None else bool(row.swap_seats and row.place % 2)


def _of_config(name: str, seat: int | None = None) -> Callable[[Any], Any]:
    """A field of a negotiation's config, or its entry for a seat."""

    def read(row: Any) -> Any:
        value = row.config.get(name) if row.game == NEGOTIATION.name else None
        return value if seat is None or value is None else value[seat]

    return read


def _lambda(row: Any) -> float | None:
    return float(NEGOTIATION.partner_weight(row.config)) if row.game == NEGOTIATION.name else None


def _points_reader(seat: int) -> Callable[[Any], int | None]:
    """Points without λ; None for a negotiation that ended without a deal."""

    def read(row: Any) -> int | None:
        if row.game != NEGOTIATION.name or row.ended is None:
            return None
        found: int = row.ended["facts"].get("scores", (0, 0))[seat]
        return found

    return read


def _got(seat: int) -> Callable[[Any], Any]:
    """What a seat got from a deal."""

    def read(row: Any) -> Any:
        shares = row.ended and row.ended["facts"].get("allocations")
        return shares and shares[seat]

    return read


def _prompt_style(seat: int) -> Callable[[Any], Any]:
    return lambda row: (_prompt(row, seat) or {}).get("style")


def _prompt_version(seat: int) -> Callable[[Any], str | None]:
    """The number at the end of a template's name: 2 for full-2."""
    return lambda row: (prompt := _prompt(row, seat)) and prompt["template"].rpartition("-")[2]


def _system_prompt(seat: int) -> Callable[[Any], Any]:
    return lambda row: (_prompt(row, seat) or {}).get("system", {}).get("prompt")


def _answer_form(seat: int) -> Callable[[Any], Any]:
    return lambda row: (_prompt(row, seat) or {}).get("answer")


def _prompt(row: Any, seat: int) -> Any:
    return row.started and row.started["prompts"][seat]


_REASONS = (
    "deal | no deal | move limit | attacker wins | defender wins | attacker breaks the rules | tied game |"
    " aborted | timeout | resigned | abandoned"
)
_UTILITY = (
    "points with λ (own points + λ × the partner's) in a negotiation, 0 without a deal; in taboo 1 and −1 for winner"
    " and loser, −1 and 0 when the attacker broke the rules, 0 and 0 otherwise"
)

PLAYERS = "person, a model's name in the registry, or whom an imported match names"

WHOLE_MATCHES = ExportTable(
    "matches",
    (
        Column("match_id", "text", "The match.", "22 characters", attrgetter("id")),
        Column("round_id", "text", "The self-play round that the match belongs to.", "a number; empty outside rounds"),
        Column("study_id", "text", "The name of the study that the match belongs to.", "empty outside studies",
               attrgetter("study")),
        Column("index", "integer", "The match's place in its round.", "from 0; empty outside rounds",
               lambda row: row.place),
        Column("game", "text", "What was played.", "negotiation | taboo"),
        Column("config", "json", "The settings of the game, with everything that was drawn.", "an object, keys sorted"),
        Column("seed", "text", "The random seed of the match.",
               "a whole number from 0, up to 62 bits, more than a spreadsheet keeps: a guarded file has an apostrophe"
               " before one of more than 15 digits"),
        Column("status", "text", "Whether the match is over.", "waiting | playing | over"),
        Column("reason", "text", "How the match ended.", f"{_REASONS}; empty until it is over"),
        Column("winner", "integer", "The seat that won.", "0 | 1 | empty for none"),
        Column("role_0", "text", "The role of seat 0.", " | ".join(roles_of_seat(0))),
        Column("player_0", "text", "Who sat in seat 0.", PLAYERS, lambda row: player_of(row.kind_0, row.model_0)),
        Column("utility_0", "number", f"What seat 0 got: {_UTILITY}.", "7; empty until it is over"),
        Column("role_1", "text", "The role of seat 1.", " | ".join(roles_of_seat(1))),
        Column("player_1", "text", "Who sat in seat 1.", PLAYERS, lambda row: player_of(row.kind_1, row.model_1)),
        Column("utility_1", "number", f"What seat 1 got: {_UTILITY}.", "6; empty until it is over"),
        Column("moves", "integer", "Accepted moves of both seats; proposals and declarations count.", "from 0",
               attrgetter("ply")),
        Column("violations", "integer", "Refused moves of both seats.", "from 0"),
        Column("agreed", "boolean", "Negotiation: whether the two proposals made a deal.",
               "true | false; empty in other games and until it is over"),
        Column("pareto_optimal", "boolean",
               "Negotiation: whether there is a deal to which no full split is better for one seat and no worse for"
               " the other, in the utilities with λ.",
               "true | false, false without a deal; empty in other games and until it is over"),
        Column("started_at", "time", "When the match began.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z"),
        Column("ended_at", "time", "When the match ended.", "ISO 8601 in UTC; empty until it is over"),
        Column("words", "integer", "Words of all accepted moves, prefixes included; a word is text between blanks.",
               "from 0; empty until it is over"),
        Column("tokens", "integer", "Tokens of the models' accepted moves, prefixes included, as their servers count.",
               "from 0; empty where no server counts them, and outside rounds"),
        Column("first_proposal", "integer", "Negotiation: the ply of the first proposal.",
               "from 0; empty without one and until it is over"),
        Column("unspoken", "boolean",
               "Negotiation: whether no message named the split that became the deal, as the scripted negotiator reads"
               f" them (claims version {CLAIMS_VERSION}).",
               "true | false; empty without a deal, and in matches that ended before this was read"),
        *(Column(f"points_{seat}", "integer", f"Negotiation: the points of what seat {seat} took, without λ.",
                 "7; 0 without a deal; empty in other games and until it is over", _points_reader(seat))
          for seat in (0, 1)),
        *(Column(f"got_{seat}", "json", f"Negotiation: the books, hats and balls that seat {seat} took.",
                 "[1, 2, 0]; empty without a deal", _got(seat)) for seat in (0, 1)),
        Column("counts", "json", "Negotiation: how many books, hats and balls there were.",
               "[3, 2, 1]; empty in other games", _of_config("counts")),
        *(Column(f"values_{seat}", "json", f"Negotiation: what a book, a hat and a ball were worth to seat {seat}.",
                 "[1, 3, 1]; empty in other games", _of_config("values", seat)) for seat in (0, 1)),
        Column("lambda", "number", "Negotiation: the weight of the partner's points in a utility.",
               "from -1 to 1; 0 for self, 1 for coop, -1 for comp; empty in other games", _lambda),
        Column("source", "text", "How the match came to be.",
               "live | terminal | selfplay | import | rehearsal; live in the browser, selfplay for one of a round,"
               " rehearsal for one of bots or of a preview, which is exported only where it is asked for"),
        Column("swapped", "boolean", "Whether the first model of the round sat in seat 1.",
               "true | false; empty outside rounds", _swapped),
        *(column for seat in (0, 1) for column in (
            Column(f"prompt_style_{seat}", "text", f"How the model in seat {seat} was prompted.",
                   "full | compact | …; empty for a person or a scripted player", _prompt_style(seat)),
            Column(f"prompt_version_{seat}", "integer", "Which version of that prompt it was.",
                   "from 1; empty for a person or a scripted player", _prompt_version(seat)),
            Column(f"system_prompt_{seat}", "text", f"What the model in seat {seat} was told beside the rules.",
                   "NAME@VERSION; empty where it was told nothing else", _system_prompt(seat)))),
        Column("game_version", "integer", "Which version of the game's rules the match was played by.", "from 1",
               lambda row: row.started and row.started["game_version"]),
        Column("lenient_moves", "integer", "Accepted moves of models that were read without what was wrapped around"
               " them; moves.csv has what was written.", "from 0"),
        *(Column(f"answer_form_{seat}", "text", f"In which form the model in seat {seat} was asked for its moves.",
                 "json-1 | …; empty for text, a person or a scripted player", _answer_form(seat)) for seat in (0, 1)),
    ),
    _select_matches(),
)  # fmt: skip
