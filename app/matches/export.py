"""Matches, moves and generations as CSV, streamed, and the codebook that explains their columns.

The tables below are the one definition of what is exported: the writer, the codebook and the documentation read it.
Rows come from the database a few at a time, so that memory does not grow with their number.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from app.matches.choice import EVERYTHING, Choice, conditions
from app.matches.events import RESERVED
from app.matches.record import iso
from app.models import EventRow, GenerationRow, LanguageModel, MatchRow, SeatRow
from app.registry import PERSON

ROWS_AT_ONCE = 200
BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_TEXTS = ("text", "json")  # the types that a spreadsheet may take for a formula
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠−]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type, what it means, which values it may hold, and where its value comes from."""

    name: str
    type: str  # text | json | integer | number | boolean | time
    meaning: str
    values: str
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the export. `statement` gives its rows in their order."""

    name: str
    columns: tuple[Column, ...]
    statement: Select[Any]


# ---- Matches ----------------------------------------------------------------

_MATCH_FIELDS = (
    "id", "round_id", "game", "config", "seed", "status", "reason", "winner", "utility_0", "utility_1", "ply",
    "violations", "agreed", "pareto_optimal", "started_at", "ended_at", "words", "tokens", "first_proposal",
)  # fmt: skip
# Matches outside rounds first, as they began; then each round in the order of its indices.
_IN_ORDER = (
    func.coalesce(MatchRow.round_id, 0), func.coalesce(MatchRow.index, 0), MatchRow.started_at, MatchRow.id,
)  # fmt: skip
_seats = aliased(SeatRow), aliased(SeatRow)
_models = aliased(LanguageModel), aliased(LanguageModel)


def _matches() -> Select[Any]:
    own = (getattr(MatchRow, field) for field in _MATCH_FIELDS)
    place = MatchRow.index.label("place")  # a row has a method called index
    statement = select(*own, place, *(each for seat in (0, 1) for each in _seat_columns(seat)))
    for seat, (row, model) in enumerate(zip(_seats, _models, strict=True)):
        statement = statement.outerjoin(row, (row.match_id == MatchRow.id) & (row.seat == seat))
        statement = statement.outerjoin(model, model.id == row.language_model_id)
    return statement.order_by(*_IN_ORDER)


def _seat_columns(seat: int) -> tuple[Any, ...]:
    row, model = _seats[seat], _models[seat]
    return (
        row.role.label(f"role_{seat}"),
        row.kind.label(f"kind_{seat}"),
        func.coalesce(model.name, row.player).label(f"model_{seat}"),
    )


def _player(kind: str | None, model: str | None) -> str | None:
    return PERSON if kind == PERSON else model


def _nothing(_row: Any) -> None:
    return None


_REASONS = (
    "deal | no deal | move limit | attacker wins | defender wins | attacker breaks the rules | tied game |"
    " aborted | timeout | resigned"
)
_UTILITY = (
    "points with λ (own points + λ × the partner's) in a negotiation, 0 without a deal; in taboo 1 and −1 for winner"
    " and loser, −1 and 0 when the attacker broke the rules, 0 and 0 otherwise"
)

_PLAYERS = "person, a model's name in the registry, or whom an imported match names"

MATCHES = Table(
    "matches",
    (
        Column("match_id", "text", "The match.", "22 characters", attrgetter("id")),
        Column("round_id", "text", "The self-play round that the match belongs to.", "a number; empty outside rounds",
               attrgetter("round_id")),
        Column("study_id", "text", "The study that the match belongs to.", "empty outside studies", _nothing),
        Column("index", "integer", "The match's place in its round.", "from 0; empty outside rounds",
               lambda row: row.place),
        Column("game", "text", "What was played.", "negotiation | taboo", attrgetter("game")),
        Column("config", "json", "The settings of the game, with everything that was drawn.", "an object, keys sorted",
               attrgetter("config")),
        Column("seed", "integer", "What all that is random in the match was drawn from.",
               "from 0, up to 62 bits, of which a spreadsheet shows 50",
               attrgetter("seed")),
        Column("status", "text", "Whether the match is over.", "waiting | playing | over", attrgetter("status")),
        Column("reason", "text", "How the match ended.", f"{_REASONS}; empty until it is over", attrgetter("reason")),
        Column("winner", "integer", "The seat that won.", "0 | 1 | empty for none", attrgetter("winner")),
        Column("role_0", "text", "The role of seat 0.", "negotiator | attacker", attrgetter("role_0")),
        Column("player_0", "text", "Who sat in seat 0.", _PLAYERS,
               lambda row: _player(row.kind_0, row.model_0)),
        Column("utility_0", "number", f"What seat 0 got: {_UTILITY}.", "7; empty until it is over",
               attrgetter("utility_0")),
        Column("role_1", "text", "The role of seat 1.", "negotiator | defender", attrgetter("role_1")),
        Column("player_1", "text", "Who sat in seat 1.", _PLAYERS,
               lambda row: _player(row.kind_1, row.model_1)),
        Column("utility_1", "number", f"What seat 1 got: {_UTILITY}.", "6; empty until it is over",
               attrgetter("utility_1")),
        Column("moves", "integer", "Accepted moves of both seats; proposals and declarations count.", "from 0",
               attrgetter("ply")),
        Column("violations", "integer", "Refused moves of both seats.", "from 0", attrgetter("violations")),
        Column("agreed", "boolean", "Negotiation: whether the two proposals made a deal.",
               "true | false; empty in other games and until it is over", attrgetter("agreed")),
        Column("pareto_optimal", "boolean",
               "Negotiation: whether there is a deal to which no full split is better for one seat and no worse for"
               " the other, in the utilities with λ.",
               "true | false, false without a deal; empty in other games and until it is over",
               attrgetter("pareto_optimal")),
        Column("started_at", "time", "When the match began.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z",
               attrgetter("started_at")),
        Column("ended_at", "time", "When the match ended.", "ISO 8601 in UTC; empty until it is over",
               attrgetter("ended_at")),
        Column("words", "integer", "Words of all accepted moves, prefixes included; what stands between blanks.",
               "from 0; empty until it is over", attrgetter("words")),
        Column("tokens", "integer", "Tokens of the models' accepted moves, prefixes included, as their servers count.",
               "from 0; empty where no server counts them, and outside rounds", attrgetter("tokens")),
        Column("first_proposal", "integer", "Negotiation: the ply of the first proposal.",
               "from 0; empty without one and until it is over", attrgetter("first_proposal")),
    ),
    _matches(),
)  # fmt: skip


# ---- Moves ------------------------------------------------------------------


def _moves() -> Select[Any]:
    return (
        select(
            EventRow.match_id,
            EventRow.ply,
            EventRow.seat,
            SeatRow.role,
            SeatRow.kind.label("seat_kind"),
            func.coalesce(LanguageModel.name, SeatRow.player).label("model"),
            EventRow.kind,
            EventRow.body,
            EventRow.at,
        )
        .join(MatchRow, MatchRow.id == EventRow.match_id)
        .join(SeatRow, (SeatRow.match_id == EventRow.match_id) & (SeatRow.seat == EventRow.seat))
        .outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
        .where(EventRow.kind.not_in(sorted(RESERVED)))
        .order_by(*_IN_ORDER, EventRow.seq)
    )


MOVES = Table(
    "moves",
    (
        Column("match_id", "text", "The match, as in matches.csv.", "22 characters", attrgetter("match_id")),
        Column("ply", "integer", "The move's number in its match, both seats counted.", "from 0",
               attrgetter("ply")),
        Column("seat", "integer", "The seat that moved.", "0 | 1", attrgetter("seat")),
        Column("role", "text", "The role of that seat.", "negotiator | attacker | defender", attrgetter("role")),
        Column("player", "text", "Who sat in that seat.", _PLAYERS,
               lambda row: _player(row.seat_kind, row.model)),
        Column("kind", "text", "What the move was taken for.", "message | proposal | declaration",
               attrgetter("kind")),
        Column("text", "text", "The move, word for word. NA and null are words, too: pandas keeps them with"
               ' keep_default_na=False, na_values=[""].', "[message] hello | [propose] (1 books, 2 hats, 0 balls)",
               lambda row: row.body["text"]),
        Column("at", "time", "When the move was accepted.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z",
               attrgetter("at")),
    ),
    _moves(),
)  # fmt: skip


# ---- Generations ------------------------------------------------------------

_GENERATION_FIELDS = (
    "match_id", "ply", "seat", "attempt", "model", "prompt", "text", "sampling", "prompt_tokens",
    "completion_tokens", "latency", "retries", "error", "at",
)  # fmt: skip


def _generations() -> Select[Any]:
    return (
        select(
            *(getattr(GenerationRow, field) for field in _GENERATION_FIELDS),
            LanguageModel.name.label("player"),
        )
        .join(MatchRow, MatchRow.id == GenerationRow.match_id)
        .outerjoin(LanguageModel, LanguageModel.id == GenerationRow.language_model_id)
        .order_by(*_IN_ORDER, GenerationRow.id)
    )


GENERATIONS = Table(
    "generations",
    (
        Column("match_id", "text", "The match, as in matches.csv.", "22 characters", attrgetter("match_id")),
        Column("ply", "integer", "The number of the move that was asked for, as in moves.csv.", "from 0",
               attrgetter("ply")),
        Column("seat", "integer", "The seat that the model sat in.", "0 | 1", attrgetter("seat")),
        Column("attempt", "integer", "How many attempts at this move had been refused before.", "from 0",
               attrgetter("attempt")),
        Column("player", "text", "The model, as the registry and matches.csv name it.", "a name",
               attrgetter("player")),
        Column("model", "text", "The name that the server gave itself.", "a name", attrgetter("model")),
        Column("prompt", "json", "The exact prompt, as chat messages.", '[{"content": "…", "role": "user"}]',
               attrgetter("prompt")),
        Column("text", "text", "What came back, word for word.", "empty when nothing did", attrgetter("text")),
        Column("sampling", "json", "What was asked for beside the prompt, and the reason that the server gave for"
               " the end of the text.", '{"finish_reason": "stop", "max_tokens": 200, "temperature": 1.0}',
               attrgetter("sampling")),
        Column("prompt_tokens", "integer", "Tokens of the prompt, as the server counts them.",
               "empty where it does not", attrgetter("prompt_tokens")),
        Column("completion_tokens", "integer", "Tokens of the text, as the server counts them.",
               "empty where it does not", attrgetter("completion_tokens")),
        Column("latency", "number", "Seconds from the question to the answer, retries included.", "0.79",
               attrgetter("latency")),
        Column("retries", "integer", "How often the request was sent again after a 429, a 5xx or no connection.",
               "from 0", attrgetter("retries")),
        Column("error", "text", "Why there was no answer.", "empty when there was one", attrgetter("error")),
        Column("at", "time", "When the answer was stored.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z",
               attrgetter("at")),
    ),
    _generations(),
)  # fmt: skip

TABLES = {table.name: table for table in (MATCHES, MOVES, GENERATIONS)}


# ---- The codebook -----------------------------------------------------------

CODEBOOK = (
    Column("table", "text", "The exported table.", " | ".join(TABLES), lambda row: row[0].name),
    Column("column", "text", "The column of that table.", "a name", lambda row: row[1].name),
    Column("type", "text", "The type of its values.", "text | json | integer | number | boolean | time",
           lambda row: row[1].type),
    Column("meaning", "text", "What it says.", "a sentence", lambda row: row[1].meaning),
    Column("values", "text", "Which values it may hold.", "a list or an example", lambda row: row[1].values),
)  # fmt: skip


def codebook(*, guard: bool = False, bom: bool = False) -> Iterator[bytes]:
    """The codebook as CSV: a row a column of every table."""
    rows = ((table, column) for table in TABLES.values() for column in table.columns)
    return to_csv(CODEBOOK, rows, guard=guard, bom=bom)


# ---- Reading and writing ----------------------------------------------------


def count(session: Session, table: Table, choice: Choice = EVERYTHING) -> int:
    """How many rows the export of a table has."""
    inner = _chosen(table, choice).order_by(None).subquery()
    return session.scalar(select(func.count()).select_from(inner)) or 0


def rows(session: Session, table: Table, choice: Choice = EVERYTHING) -> Iterator[Any]:
    """The rows of a table, rounds by their indices and all else as it began, from one consistent moment."""
    statement = _chosen(table, choice)
    return iter(session.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE}))


def _chosen(table: Table, choice: Choice) -> Select[Any]:
    return table.statement.where(*conditions(choice))


def to_csv(
    columns: Sequence[Column], found: Iterable[Any], *, guard: bool = False, bom: bool = False
) -> Iterator[bytes]:
    """CSV in UTF-8, header first, in pieces of some hundred rows.

    `guard` puts an apostrophe before text that a spreadsheet would take for a formula; `bom` marks UTF-8 for Excel.
    """
    writer = csv.writer(SimpleNamespace(write=lambda text: text))

    def line(cells: Sequence[str]) -> str:
        # The writer ends lines with CR LF, because only then does it quote both of them inside a cell.
        text: str = writer.writerow(cells)
        return text[:-2] + "\n"

    piece = [(BOM if bom else "") + line([column.name for column in columns])]
    for row in found:
        piece.append(line([_cell(column, row, guard) for column in columns]))
        if len(piece) >= ROWS_AT_ONCE:
            yield "".join(piece).encode()
            piece.clear()
    yield "".join(piece).encode()


def _cell(column: Column, row: Any, guard: bool) -> str:
    value = column.read(row)
    match value:
        case None:
            text = ""
        case bool():
            text = "true" if value else "false"
        case float():
            text = str(int(value)) if value.is_integer() else repr(value)
        case datetime():
            text = iso(value)
        case dict() | list():
            text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        case _:
            text = str(value)
    return f"'{text}" if guard and column.type in _TEXTS and looks_like_formula(text) else text


def looks_like_formula(text: str) -> bool:
    """Whether a spreadsheet may run the text: it begins with = + - @, a tab or a line break, whatever blank is before.

    Source: OWASP, CSV Injection, with the full-width variants that some programs treat alike.
    """
    if text[:1] in ("\t", "\r", "\n") and text:
        return True
    blank = 0
    while blank < len(text) and (text[blank].isspace() or unicodedata.category(text[blank]) in ("Cf", "Zs")):
        blank += 1
    return bool(_FORMULA.match(text, blank))
