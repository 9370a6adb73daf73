"""analysis.csv: one row per person, with the values that the design's rules need and the outcomes by condition.

No row is ever left out: `excluded_by` lists the rules that exclude the person, and `data` whether the enrolment counts.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.csv_tables import ROWS_AT_ONCE, Column
from app.games import find_game
from app.games.match_table import FinishedMatch, MatchTableBuilder
from app.games.metrics import ABORTED
from app.matches.filter import is_over
from app.models import Arm, Enrolment, EventRow, MatchRow, Participant, SeatRow, StudyVersion, Wave
from app.registry import PERSON
from app.studies.arms import conditions
from app.studies.column_names import UTILITY, outcome_name
from app.studies.design import StudyDesign
from app.studies.export.columns import DATA, PARTICIPANT, WAVE, WITHDRAWN, data_of, of_people, streamed
from app.studies.export.scope import ExportScope
from app.studies.export.surveys import LOST, NOT_ASKED, PersonAnswers, answered, quiz_attempts
from app.studies.expressions import read_comparison
from app.studies.participant_steps import SURVEY, steps

ATTENTION = "attention"


class PlayedRow(NamedTuple):
    """A match that counts, was played to its end and was not aborted, from the person's seat."""

    condition: Mapping[str, str]
    seat: int
    finished: FinishedMatch


class MoveTimes(NamedTuple):
    """What the browser measured of all moves of a person in matches that count; in milliseconds and characters."""

    shown: float = 0
    hidden: float = 0
    written: float = 0
    pasted: float = 0

    def plus(self, timing: Mapping[str, Any]) -> "MoveTimes":
        """With the measurements of one more move."""
        pasted = timing.get("pasted", 0) + timing.get("dropped", 0)
        return MoveTimes(
            self.shown + timing.get("sent", 0),
            self.hidden + timing.get("hidden", 0),
            self.written + pasted + timing.get("typed", 0) + timing.get("dictated", 0) + timing.get("replaced", 0),
            self.pasted + pasted,
        )


class AttentionChecks(NamedTuple):
    """How many attention checks a person passed, was asked, and was not asked."""

    passed: int
    asked: int
    unasked: int


class AnalysedPerson(NamedTuple):
    """A row of analysis.csv. `measured` has the values that rules use, `outcomes` a mean by column; None is unknown."""

    participant: str
    wave: str
    version: int
    arm: str | None
    device: str | None
    stratum: str | None
    ending: str | None
    data: str
    measured: Mapping[str, float | None]
    outcomes: Mapping[str, float | None]
    excluded_by: str


# ---- Columns ---------------------------------------------------------------


def _measure_reader(name: str) -> Callable[[Any], Any]:
    return lambda row: row.measured.get(name)


def _outcome_reader(name: str) -> Callable[[Any], Any]:
    return lambda row: row.outcomes.get(name)


_UNKNOWN = "empty where nothing is known, and for who withdrew all data"
_MEASURES = (
    (ATTENTION, "integer", "How many attention checks were passed.", "from 0; empty before the first one"),
    ("minutes", "number", "Minutes from entry to the end.", "21.5"),
    ("pasted_share", "number", "The share of the characters of moves that were pasted or dropped in.", "from 0 to 1"),
    ("hidden_share", "number", "The share of the time of the person's turns in which the page was hidden.",
     "from 0 to 1"),
    ("quiz_attempts", "integer", "Attempts at all quizzes.", "from 0; empty before the first one"),
    ("matches", "integer", "Matches that count, without those that a model aborted.", "from 0"),
    (UTILITY, "number", "The mean utility of these matches.", "6.5"),
)  # fmt: skip


def analysis_columns(scope: ExportScope) -> list[Column]:
    """The columns of analysis.csv."""
    return [
        PARTICIPANT,
        WAVE,
        Column("version", "integer", "The version of the study.", "from 1"),
        Column("arm", "text", "The arm.", "a name; empty before it was drawn"),
        Column("device", "text", "The person's device.", "desktop | tablet | phone"),
        Column("stratum", "text", "The stratum within which the arm was drawn.", "empty where all are one"),
        Column("ending", "text", "How it ended.", "completed | withdrawn | …; empty while active"),
        DATA,
        Column("excluded_by", "text", "The rules of the design that exclude the person, one after the other; a rule"
               " about a question that is asked several times holds if it holds once, and no rule holds for what the"
               " person was not asked.",
               " | ".join(_exclusion_rules(scope)) or "empty, as there are none"),
        *(Column(name, kind, meaning, f"{values}; {_UNKNOWN}", _measure_reader(name))
          for name, kind, meaning, values in _MEASURES),
        *(Column(outcome_name(figure, condition), "number",
                 f"The mean {figure} of the person's matches under {_in_words(condition)}.",
                 "empty without such a match, and for who withdrew all data",
                 _outcome_reader(outcome_key(figure, condition)))
          for figure, condition in _outcome_columns(scope)),
    ]  # fmt: skip


def _exclusion_rules(scope: ExportScope) -> list[str]:
    return list(dict.fromkeys(rule for design in scope.designs.values() for rule in design.analysis.exclude))


def _outcome_columns(scope: ExportScope) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The figure and condition of each distinct outcome."""
    seen = set()
    for design in scope.designs.values():
        for figure in dict.fromkeys((UTILITY, design.analysis.outcome)):
            for condition in conditions(design):
                key = outcome_key(figure, condition)
                if key not in seen:
                    seen.add(key)
                    yield figure, condition


def outcome_key(figure: str, condition: Mapping[str, str]) -> str:
    """A key unique to an outcome: labels may differ even if the names of their columns do not."""
    return "\n".join([figure, *condition.values()])


def _in_words(condition: Mapping[str, str]) -> str:
    return ", ".join(f"{factor} {label}" for factor, label in condition.items())


# ---- Rows ------------------------------------------------------------------


def analysis_rows(session: Session, scope: ExportScope) -> Iterator[AnalysedPerson]:
    """The rows of analysis.csv, people in the order in which they came."""
    columns: tuple[Any, ...] = (
        Enrolment.id, Enrolment.study_version_id, Enrolment.device, Enrolment.stratum, Enrolment.ending,
        Enrolment.agreed_at, Enrolment.step, Enrolment.answers, Enrolment.plan, Enrolment.enrolled_at,
        Enrolment.ended_at, Participant.code.label("participant"), Participant.erased_at, Wave.name.label("wave"),
        Arm.name.label("arm"), StudyVersion.number.label("version"),
    )  # fmt: skip
    statement = (
        of_people(select(*columns), scope)
        .join(StudyVersion, StudyVersion.id == Enrolment.study_version_id)
        .outerjoin(Arm, Arm.id == Enrolment.arm_id)
    )
    for people in streamed(session, statement).partitions(ROWS_AT_ONCE):
        played, times = _played_matches(session, people), _times(session, people)
        for row in people:
            yield _analysed(scope, row, played.get(row.id, ()), times.get(row.id, MoveTimes()))


def person_answers(scope: ExportScope, row: Any) -> PersonAnswers:
    """An enrolment with its answers. If it ended early, it got no further than its answers."""
    design = scope.designs[row.study_version_id]
    last = len(steps(design)) - 1
    passed = row.step if row.ending is None else last if row.ending == "completed" else 0
    return PersonAnswers(row.participant, row.wave, design, row.answers, passed, data_of(scope, row))


def _analysed(scope: ExportScope, row: Any, played: Sequence[PlayedRow], times: MoveTimes) -> AnalysedPerson:
    design = scope.designs[row.study_version_id]
    data = data_of(scope, row)
    measured: dict[str, float | None] = {}
    outcomes: dict[str, float | None] = {}
    excluded: list[str] = []
    if data != WITHDRAWN:
        person = person_answers(scope, row)
        checks = _attention(design, person)
        measured = _measures_of(design, row, person, checks, played, times)
        for figure in dict.fromkeys((UTILITY, design.analysis.outcome)):
            outcomes.update(_mean_figures_by_condition(design, figure, played))
        excluded = [rule for rule in design.analysis.exclude if _is_excluded_by_rule(rule, measured, checks, person)]
    return AnalysedPerson(
        row.participant, row.wave, row.version, row.arm, row.device, row.stratum, row.ending, data, measured, outcomes,
        "; ".join(excluded),
    )  # fmt: skip


def _measures_of(
    design: StudyDesign,
    row: Any,
    person: PersonAnswers,
    checks: AttentionChecks,
    played: Sequence[PlayedRow],
    times: MoveTimes,
) -> dict[str, float | None]:
    utilities = [each.finished.utilities[each.seat] for each in played]
    quizzes = [len(attempts) for _, attempts in quiz_attempts(design, person.answers)]
    return {
        ATTENTION: checks.passed if checks.asked else None,
        "minutes": None if row.ended_at is None else round((row.ended_at - row.enrolled_at).total_seconds() / 60, 3),
        "pasted_share": _share(times.pasted, times.written),
        "hidden_share": _share(times.hidden, times.shown),
        "quiz_attempts": sum(quizzes) if quizzes else None,
        "matches": len(played),
        UTILITY: fmean(utilities) if utilities else None,
    }


def _attention(design: StudyDesign, person: PersonAnswers) -> AttentionChecks:
    """How a person did in the attention checks of the design."""
    right = {
        (step.key, question.id): question.attention
        for step in steps(design)
        if step.kind == SURVEY and step.part is not None
        for question in design.survey.parts[step.part]
        if question.attention is not None
    }
    checks = [each for each in answered(person) if (each.step.key, each.question) in right]
    asked = [each for each in checks if each.missing not in (NOT_ASKED, LOST)]
    passed = sum(right[each.step.key, each.question] == each.answer for each in asked)
    return AttentionChecks(passed, len(asked), len(checks) - len(asked))


def _share(part: float, whole: float) -> float | None:
    return round(min(1.0, part / whole), 6) if whole else None


def _is_excluded_by_rule(
    text: str, measured: Mapping[str, float | None], checks: AttentionChecks, person: PersonAnswers
) -> bool:
    """Whether a rule excludes a person.

    Questions that were not asked exclude nobody: a rule about attention holds only if it would also hold had the person
    passed the checks that were not asked.
    """
    rule = read_comparison(text)
    if rule.name == ATTENTION and checks.asked and not rule.holds(checks.passed + checks.unasked):
        return False
    if rule.name in measured:
        return rule.holds(measured[rule.name])
    given = (each.answer for each in answered(person) if each.question == rule.name and each.missing is None)
    return any(rule.holds(answer) for answer in given if isinstance(answer, str | int | float))


def _mean_figures_by_condition(
    design: StudyDesign, figure: str, played: Sequence[PlayedRow]
) -> Iterator[tuple[str, float]]:
    """The mean of a figure under each condition in which the person played."""
    values = _match_values(design, figure, played)
    by_name: dict[str, list[float]] = {}
    for each, value in zip(played, values, strict=True):
        if not math.isnan(value):
            by_name.setdefault(outcome_key(figure, each.condition), []).append(value)
    yield from ((name, fmean(found)) for name, found in by_name.items())


def _match_values(design: StudyDesign, figure: str, played: Sequence[PlayedRow]) -> list[float]:
    """A figure for each match, of the person's seat if it differs by seat; NaN if a match has none."""
    if figure == UTILITY:
        return [each.finished.utilities[each.seat] for each in played]
    metric = find_game(design.game).metrics.columns[figure]
    if metric.value is None or not played:
        return [math.nan] * len(played)
    builder = MatchTableBuilder()
    builder.add([each.finished for each in played])
    table = builder.matches()
    found = metric.value(table).astype(float)
    among = None if metric.among is None else metric.among(table)
    return [
        math.nan
        if among is not None and not among[at]
        else float(found[at, each.seat] if metric.by_seat else found[at])
        for at, each in enumerate(played)
    ]


def _played_matches(session: Session, people: Iterable[Any]) -> dict[int, list[PlayedRow]]:
    """The matches of some people that count and were not aborted by a model, by enrolment."""
    plans = {row.id: row.plan for row in people}
    columns: tuple[Any, ...] = (
        SeatRow.enrolment_id, SeatRow.seat, MatchRow.position, MatchRow.reason, MatchRow.utility_0, MatchRow.utility_1,
        MatchRow.ply, MatchRow.words, MatchRow.tokens, MatchRow.violations, MatchRow.first_proposal, MatchRow.winner,
        MatchRow.agreed, MatchRow.pareto_optimal, MatchRow.unspoken, MatchRow.measures,
    )  # fmt: skip
    rows = session.execute(
        select(*columns)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(SeatRow.enrolment_id.in_(plans), MatchRow.position.is_not(None), is_over())
        .where(MatchRow.reason != ABORTED)
        .order_by(SeatRow.enrolment_id, MatchRow.position, MatchRow.id)
    )
    found: dict[int, list[PlayedRow]] = {}
    for row in rows:
        condition = plans[row.enrolment_id]["matches"][row.position]["condition"]
        finished = FinishedMatch(
            (row.utility_0, row.utility_1), (PERSON, PERSON), row.reason, row.ply, row.words, row.tokens,
            row.violations, row.first_proposal, row.winner, row.agreed, row.pareto_optimal, row.unspoken,
            measures=row.measures,
        )  # fmt: skip
        found.setdefault(row.enrolment_id, []).append(PlayedRow(condition, row.seat, finished))
    return found


def _times(session: Session, people: Iterable[Any]) -> dict[int, MoveTimes]:
    """The measurements of these people's browsers, by enrolment."""
    rows = session.execute(
        select(SeatRow.enrolment_id, EventRow.timing)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .join(EventRow, (EventRow.match_id == MatchRow.id) & (EventRow.seat == SeatRow.seat))
        .where(SeatRow.enrolment_id.in_([row.id for row in people]), MatchRow.position.is_not(None))
        .where(EventRow.timing.is_not(None))
    )
    found: dict[int, MoveTimes] = {}
    for row in rows:
        found[row.enrolment_id] = found.get(row.enrolment_id, MoveTimes()).plus(row.timing)
    return found
