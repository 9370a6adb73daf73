"""Tables of matches and moves: those of `flask export`, with the person, the plan, and how moves were written."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Select, func
from sqlalchemy.orm import aliased

from app.core.csv_tables import Column
from app.matches.export import WHOLE_MATCHES, WHOLE_MOVES
from app.matches.move_timing import COUNTS, MILLISECONDS
from app.models import Arm, Enrolment, EventRow, MatchRow, Participant, SeatRow, Wave
from app.registry import PERSON
from app.studies.export.columns import (
    CODE,
    DATA_OF,
    OF_WHOM,
    PARTICIPANT,
    WAVE,
    StoredTable,
    data_column,
    unless_withdrawn,
)
from app.studies.export.scope import ExportScope
from app.studies.human_claims import claims_to_be_human

_own, _mover, _facing = aliased(SeatRow), aliased(SeatRow), aliased(SeatRow)
_of_data = aliased(Participant)  # the person whose data a move is: the mover, or the partner of the model that moved


def tables(scope: ExportScope) -> list[StoredTable]:
    """Both tables."""
    return [
        StoredTable("matches", _match_columns(scope), _select_matches(scope)),
        StoredTable("moves", _move_columns(scope), _select_moves(scope)),
    ]


def _plan_for_match(row: Any) -> Mapping[str, Any]:
    """The person's plan for a match."""
    plan = row.plan or {}
    matches = plan.get("matches", [])
    if row.position is None or row.position >= len(matches):
        return {}
    found: Mapping[str, Any] = matches[row.position]
    return found


def _planned_condition_reader(factor: str) -> Callable[[Any], Any]:
    return lambda row: _plan_for_match(row).get("condition", {}).get(factor)


def _match_columns(scope: ExportScope) -> tuple[Column, ...]:
    return (
        PARTICIPANT,
        WAVE,
        data_column(scope),
        Column("arm", "text", "The person's arm.", "a name"),
        Column("position", "integer", "The number of the match among those that count.", "from 0; empty for practice"),
        Column("practice", "boolean", "Whether it was a practice match, which neither counts nor pays.",
               "true | false", lambda row: row.position is None),
        Column("block", "integer", "The number of its block.", "from 0; empty for practice",
               lambda row: _plan_for_match(row).get("block")),
        *(Column(f"condition_{factor}", "text", f"The level of {factor} that was planned.",
                 "a label; empty for practice", _planned_condition_reader(factor)) for factor in scope.factors),
        Column("piece", "integer", "The piece of material that was planned, as in material.csv.",
               "from 0; empty for practice and without material", lambda row: _plan_for_match(row).get("piece")),
        Column("own_seat", "integer", "The person's seat.", "0 | 1"),
        unless_withdrawn(Column(
            "own_utility", "number", "The person's utility, as in utility_0 or utility_1.", "7; empty until it is over",
            lambda row: (row.utility_0, row.utility_1)[row.own_seat])),
        Column("replaces", "text", "The match, ended by a model's failure, that this one replaces.",
               "22 characters; empty for others", lambda row: (row.options or {}).get("replaces")),
        *(unless_withdrawn(column) if column.name in _PLAYED else column
          for column in WHOLE_MATCHES.columns if column.name not in _NOT_OF_STUDIES),
    )  # fmt: skip


_NOT_OF_STUDIES = ("round_id", "study_id", "index", "swapped")
# Results of a match that its person contributed to.
_PLAYED = (
    "reason", "winner", "utility_0", "utility_1", "moves", "violations", "agreed", "pareto_optimal", "ended_at",
    "words", "tokens", "first_proposal", "unspoken", "points_0", "points_1", "got_0", "got_1",
)  # fmt: skip


def _select_matches(scope: ExportScope) -> Select[Any]:
    own: tuple[Any, ...] = (
        MatchRow.position, MatchRow.options, _own.seat.label("own_seat"), Enrolment.plan,
        *OF_WHOM, Arm.name.label("arm"), *DATA_OF,
    )  # fmt: skip
    return (
        WHOLE_MATCHES.statement.add_columns(*own)
        .join(_own, _own.match_id == MatchRow.id)
        .join(Enrolment, Enrolment.id == _own.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .outerjoin(Arm, Arm.id == Enrolment.arm_id)
        .where(Enrolment.wave_id.in_(scope.waves))
        .order_by(_own.seat)
    )


_MEASURED: Mapping[str, str] = {
    "first_input": "from when the person could move to the first input",
    "typing": "from the first input to the last",
    "sent": "from when the person could move to the sending",
    "hidden": "in which the page was hidden",
}


def _of_timing(name: str) -> Callable[[Any], Any]:
    return lambda row: (row.timing or {}).get(name)


def _move_columns(scope: ExportScope) -> tuple[Column, ...]:
    by_person = "empty for a model, and where the browser measured nothing"
    return (
        _MOVER,
        replace(data_column(scope), meaning="Whether the data of the person counts who moved, or faced this model."),
        *(_move_column(column, scope) for column in WHOLE_MOVES.columns),
        *(Column(f"{name}_ms", "number", f"Milliseconds {_MEASURED.get(name, name)}, by the browser's clock.",
                 by_person, _of_timing(name)) for name in MILLISECONDS),
        *(Column(name, "integer", f"What the browser counted as {name}; docs/protocol.md says what each is.",
                 by_person, _of_timing(name)) for name in COUNTS),
        Column("claims_human", "boolean", "Whether a model's text says, in plain words, that a human wrote it.",
               "true | false; empty for a person",
               lambda row: claims_to_be_human(row.body["text"]) if row.seat_kind != PERSON else None),
        Column("target_s", "number", "Seconds after which a model's reply was due.", "empty for a person",
               _of_timing("target")),
        Column("late_s", "number", "Seconds by which a model's reply was later than that.",
               "0 for one in time; empty for a person", _of_timing("late")),
    )  # fmt: skip


def _move_column(column: Column, scope: ExportScope) -> Column:
    if scope.public and column.name == "text":
        return replace(column, values="empty, as the export is public", read=lambda _row: None)
    return unless_withdrawn(column, "mover_erased_at") if column.name in ("kind", "text", "at") else column


_MOVER = Column("participant", "text", "The person who moved.", "empty for a model")


def _select_moves(scope: ExportScope) -> Select[Any]:
    return (
        WHOLE_MOVES.statement.add_columns(
            EventRow.timing,
            CODE,
            Participant.erased_at.label("mover_erased_at"),
            _of_data.erased_at,
            Enrolment.ending,
            Enrolment.agreed_at,
            Enrolment.study_version_id,
        )
        .join(_mover, (_mover.match_id == EventRow.match_id) & (_mover.seat == EventRow.seat))
        .outerjoin(Participant, Participant.id == _mover.participant_id)
        .outerjoin(_facing, (_facing.match_id == EventRow.match_id) & (_facing.seat != EventRow.seat))
        .join(Enrolment, Enrolment.id == func.coalesce(_mover.enrolment_id, _facing.enrolment_id))
        .join(_of_data, _of_data.id == Enrolment.participant_id)
        .where(EventRow.match_id.in_(scope.matches))
    )
