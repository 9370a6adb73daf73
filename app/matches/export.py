"""The tables of played matches, for export: matches, moves, events and generations.

Each table is defined once: app/core/csv_tables.py writes it, the codebook explains it. TABLES are given to everybody,
without the hidden parts of blinded matches (`blinding.py`); the archives of studies contain the whole tables. Rows are
fetched from the database in small batches, so that memory does not grow with their number.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from sqlalchemy import Row, Select, func, or_, select
from sqlalchemy.orm import Session

from app.core.csv_tables import ROWS_AT_ONCE, Column
from app.core.failures import Outcome
from app.games import roles_of_seat
from app.jobs.call_costs import CostSource
from app.matches.blinding import blinded_conditions, is_blinded
from app.matches.events import RESERVED
from app.matches.export_matches import IN_ORDER, PLAYERS, WHOLE_MATCHES, ExportTable, player_of
from app.matches.filter import EVERYTHING, MatchFilter
from app.models import EventRow, GenerationRow, LanguageModel, MatchRow, SeatRow
from app.models.types import rounded_log_probs

__all__ = [
    "EVENTS",
    "GENERATIONS",
    "MATCHES",
    "MOVES",
    "TABLES",
    "WHOLE_MATCHES",
    "WHOLE_MOVES",
    "ExportTable",
    "count",
    "rows",
]


def _select_events() -> Select[Any]:
    """All events with the player of their seat, if they belong to a seat."""
    return (
        select(
            EventRow.match_id,
            EventRow.seq,
            EventRow.ply,
            EventRow.kind,
            EventRow.seat,
            SeatRow.role,
            SeatRow.kind.label("seat_kind"),
            func.coalesce(LanguageModel.name, SeatRow.player).label("model"),
            EventRow.body,
            EventRow.at,
        )
        .join(MatchRow, MatchRow.id == EventRow.match_id)
        .outerjoin(SeatRow, (SeatRow.match_id == EventRow.match_id) & (SeatRow.seat == EventRow.seat))
        .outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
        .order_by(*IN_ORDER, EventRow.seq)
    )


WHOLE_MOVES = ExportTable(
    "moves",
    (
        Column("match_id", "text", "The match, as in matches.csv.", "22 characters"),
        Column("ply", "integer", "The move's number in its match, both seats counted.", "from 0"),
        Column("seat", "integer", "The seat that moved.", "0 | 1"),
        Column("role", "text", "The role of that seat.", " | ".join(roles_of_seat(0, 1))),
        Column("player", "text", "Who sat in that seat.", PLAYERS, lambda row: player_of(row.seat_kind, row.model)),
        Column("kind", "text", "The kind of move, as it was parsed.", "message | proposal | declaration"),
        Column("text", "text", "The move, word for word. NA and null are words, too: pandas keeps them with"
               ' keep_default_na=False, na_values=[""].', "[message] hello | [propose] (1 books, 2 hats, 0 balls)",
               lambda row: row.body["text"]),
        Column("at", "time", "When the move was accepted.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z"),
        Column("original", "text", "What the model wrote, where text is what was left by a lenient reading, or what its"
               " JSON says.", "empty for all other moves", lambda row: row.body.get("original")),
    ),
    _select_events().where(EventRow.kind.not_in(sorted(RESERVED))),
)  # fmt: skip


_WHOLE_EVENTS = ExportTable(
    "events",
    (
        Column("match_id", "text", "The match, as in matches.csv.", "22 characters"),
        Column("seq", "integer", "The event's place in the log of its match.", "from 0, without gaps"),
        Column("ply", "integer", "Accepted moves before the event.", "from 0"),
        Column("kind", "text", "What happened: the match began, a move was accepted (named as in moves.csv) or refused"
               " (violation), somebody left, a clock ran out, the match was aborted, the match ended.",
               "started | message | proposal | declaration | violation | resigned | timeout | away | aborted | ended"),
        Column("seat", "integer", "The seat that the event is about.", "0 | 1 | empty for the match as a whole"),
        Column("role", "text", "The role of that seat.", " | ".join([*roles_of_seat(0, 1), "empty without a seat"])),
        Column("player", "text", "Who sat in that seat.", f"{PLAYERS}; empty without a seat",
               lambda row: player_of(row.seat_kind, row.model)),
        Column("body", "json", "The event as the log keeps it: of a move its text and what was read from it, of a"
               " refused move its text, the rule that it broke and the reason that was shown, of the end its outcome.",
               '{"code": "grammar", "kind": "violation", "reason": "…", "seat": 0, "text": "…", "v": 1}'),
        Column("at", "time", "When the event was stored.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z"),
    ),
    _select_events(),
)  # fmt: skip


# ---- Generations ------------------------------------------------------------


def _log_probs(row: Row[Any]) -> list[float] | None:
    return None if row.log_probs is None else rounded_log_probs(row.log_probs)


_GENERATION_FIELDS = (
    "match_id", "ply", "seat", "attempt", "model", "prompt", "text", "sampling", "prompt_tokens",
    "completion_tokens", "latency", "retries", "error", "at", "token_ids", "log_probs", "reasoning", "cached_tokens",
    "reasoning_tokens", "outcome", "cache_write_tokens", "cost", "cost_source",
)  # fmt: skip


def _generations() -> Select[Any]:
    return (
        select(
            *(getattr(GenerationRow, field) for field in _GENERATION_FIELDS),
            LanguageModel.name.label("player"),
        )
        .join(MatchRow, MatchRow.id == GenerationRow.match_id)
        .outerjoin(LanguageModel, LanguageModel.id == GenerationRow.language_model_id)
        .order_by(*IN_ORDER, GenerationRow.id)
    )


_WHOLE_GENERATIONS = ExportTable(
    "generations",
    (
        Column("match_id", "text", "The match, as in matches.csv.", "22 characters"),
        Column("ply", "integer", "The number of the move that was asked for, as in moves.csv.", "from 0"),
        Column("seat", "integer", "The seat that the model sat in.", "0 | 1"),
        Column("attempt", "integer", "How many attempts at this move had been refused before.", "from 0"),
        Column("player", "text", "The model, as the registry and matches.csv name it.", "a name"),
        Column("model", "text", "The name that the server gave itself.", "a name"),
        Column("prompt", "json", "The exact prompt, as chat messages.", '[{"content": "…", "role": "user"}]'),
        Column("text", "text", "The answer, word for word.", "empty when nothing did"),
        Column("sampling", "json", "The sampling parameters that were sent, and the reason that the server gave for"
               " the end of the text. `sampling_state` says whether the temperature is known to have an effect (sent),"
               " was refused, or may be ignored (unverified).",
               '{"finish_reason": "stop", "max_tokens": 200, "sampling_state": "unverified", "temperature": 1.0}'),
        Column("prompt_tokens", "integer", "Tokens of the prompt, as the server counts them.",
               "empty where it does not"),
        Column("completion_tokens", "integer", "Tokens of reasoning and text, as the server counts them.",
               "empty where it does not"),
        Column("latency", "number", "Seconds from the question to the answer, retries included.", "0.79"),
        Column("retries", "integer", "How often the request was sent again after a 429, a 5xx or no connection.",
               "from 0"),
        Column("error", "text", "Why there was no answer.", "empty when there was one"),
        Column("at", "time", "When the answer was stored.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z"),
        Column("token_ids", "json", "The tokens that a local model sampled, the one that ended the text last.",
               "[17, 4, 2]; empty for other models"),
        Column("log_probs", "json", "The natural logarithm of the probability of each of these tokens, before masks,"
               " temperature and limits of the sampling.", "[-0.693147, -1.386294, -0.000021]; empty for other models",
               _log_probs),
        Column("reasoning", "text", "The reasoning before the answer, where the server shows it: neither the partner"
               " nor a later prompt has it.", "empty when nothing was shown"),
        Column("cached_tokens", "integer", "Those of prompt_tokens that the server had in its cache.",
               "empty where it does not count them"),
        Column("reasoning_tokens", "integer", "Those of completion_tokens that are reasoning.",
               "empty where the server does not count them"),
        Column("outcome", "text", "The outcome: a move, or why there is none.",
               " | ".join(get_args(Outcome)) + "; empty for other models and earlier releases"),
        Column("cache_write_tokens", "integer", "Those of prompt_tokens that the server wrote to its cache.",
               "empty where it does not count them"),
        Column("cost", "number", "What the call cost, in US dollars.",
               "0.00042; empty where it is unknown, for models that run here and for earlier releases"),
        Column("cost_source", "text", "The source of the cost: reported by the server, or computed from the tokens and"
               " the model's prices at that time; where the server counts no tokens, estimated by the texts' length.",
               " | ".join(get_args(CostSource)) + "; empty without a cost"),
    ),
    _generations(),
)  # fmt: skip

# Columns that are empty for blinded matches: who played, and whatever reveals that or how the match ended.
_HIDDEN = {
    "matches": (
        "reason", "winner", "player_0", "player_1", "utility_0", "utility_1", "agreed", "pareto_optimal", "tokens",
        "unspoken", "points_0", "points_1", "got_0", "got_1", "prompt_style_0", "prompt_style_1", "prompt_version_0",
        "prompt_version_1", "lenient_moves", "answer_form_0", "answer_form_1", "system_prompt_0",
        "system_prompt_1",
    ),
    "moves": ("player", "original"),
    "events": ("player", "body"),
    "generations": (),
}  # fmt: skip


def _without_what_is_hidden(table: ExportTable) -> ExportTable:
    """The table as given to everybody. It has no model calls and no ending events of blinded matches."""
    hidden = _HIDDEN[table.name]
    columns = tuple(_emptied(column) if column.name in hidden else column for column in table.columns)
    statement = table.statement.add_columns(is_blinded().label("blinded"))
    if table is _WHOLE_EVENTS:
        statement = statement.where(or_(EventRow.kind.not_in(_OF_ENDINGS), ~is_blinded()))
    elif table is _WHOLE_GENERATIONS:
        statement = statement.where(~is_blinded())
    return ExportTable(table.name, columns, statement)


def _emptied(column: Column) -> Column:
    return replace(column, read=lambda row: None if row.blinded else column.read(row))


_OF_ENDINGS = ("resigned", "timeout", "aborted", "ended")
MATCHES, MOVES, EVENTS, GENERATIONS = map(
    _without_what_is_hidden, (WHOLE_MATCHES, WHOLE_MOVES, _WHOLE_EVENTS, _WHOLE_GENERATIONS)
)
TABLES = {table.name: table for table in (MATCHES, MOVES, EVENTS, GENERATIONS)}


# ---- Reading ---------------------------------------------------------------


def count(session: Session, table: ExportTable, choice: MatchFilter = EVERYTHING) -> int:
    """The number of rows in the export of a table."""
    inner = _chosen_rows(table, choice).order_by(None).subquery()
    return session.scalar(select(func.count()).select_from(inner)) or 0


def rows(session: Session, table: ExportTable, choice: MatchFilter = EVERYTHING) -> Iterator[Any]:
    """The rows of a table, rounds by their indices and all else by start time, from one consistent moment."""
    statement = _chosen_rows(table, choice)
    return iter(session.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE}))


def _chosen_rows(table: ExportTable, choice: MatchFilter) -> Select[Any]:
    return table.statement.where(*blinded_conditions(choice))
