"""People's answers, as one row per answer and as one row per person; and their attempts at quizzes.

Missing answers have a reason. Where it replaces the answer, it is a code that begins with a full stop, as statistics
programs write missing values.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from app.core.csv_tables import Column
from app.studies.column_names import answer_name, questions_asked, rows_of
from app.studies.design import StudyDesign, SurveyQuestion
from app.studies.export.columns import DATA, PARTICIPANT, WAVE
from app.studies.export.columns import WITHDRAWN as DELETED
from app.studies.export.scope import ExportScope
from app.studies.participant_steps import PARTNER, QUIZ, SURVEY, Step, steps
from app.studies.survey import NOT_SAID

NOT_ASKED, SKIPPED, REFUSED, LOST, WITHDRAWN, WITHHELD = (
    "not asked", "skipped", "not said", "lost", "withdrawn", "withheld",
)  # fmt: skip
CODES: Mapping[str, str] = {
    NOT_ASKED: ".n", SKIPPED: ".s", REFUSED: ".r", LOST: ".l", WITHDRAWN: ".w", WITHHELD: ".h",
}  # fmt: skip
REASONS: Mapping[str, str] = {
    NOT_ASKED: "the question did not apply, or the person never came to it",
    SKIPPED: "the person left it open",
    REFUSED: "the person preferred not to say",
    LOST: "the person came by it, and no answer is there",
    WITHDRAWN: "the person had all data deleted",
    WITHHELD: "it is in the person's own words, and the export is public",
}
ESCAPED = "an answer that is such a code itself has one more full stop before it: ..n"
_LIKE_A_CODE = re.compile(rf"\.*(?:{'|'.join(map(re.escape, CODES.values()))})")
_IN_OWN_WORDS = ("text", "outside")


class AnsweredQuestion(NamedTuple):
    """An answer to a question, or to a row of a matrix, or why there is none."""

    step: Step
    question: str
    kind: str
    row: str | None
    answer: Any
    missing: str | None
    typed: str | None = None  # a number as it was typed


class PersonAnswers(NamedTuple):
    """An enrolment as these tables need it."""

    participant: str
    wave: str
    design: StudyDesign
    answers: Mapping[str, Any]
    passed: int  # number of completed steps
    data: str  # as in the column `data`


def answered(person: PersonAnswers, *, public: bool = False) -> Iterator[AnsweredQuestion]:
    """All questions for a person, in the order of the study's steps."""
    for at, step in enumerate(steps(person.design)):
        if step.kind == SURVEY and step.part is not None:
            for question in person.design.survey.parts[step.part]:
                for row in rows_of(question):
                    found, missing = _survey_cell(person, at, step, question, row)
                    if public and missing is None and question.kind in _IN_OWN_WORDS:
                        found, missing = None, WITHHELD
                    typed = None if missing is not None else _number_as_typed(person, step, question)
                    yield AnsweredQuestion(step, question.id, question.kind, row, found, missing, typed)
        elif step.kind == PARTNER:
            values = person.answers.get(step.key, {}).get("values", {})
            for name, value in sorted(values.items()):
                yield AnsweredQuestion(step, name, "choice", None, value, None)


def _survey_cell(
    person: PersonAnswers, at: int, step: Step, question: SurveyQuestion, row: str | None
) -> tuple[Any, str | None]:
    if person.data == DELETED:
        return None, WITHDRAWN
    sent = person.answers.get(step.key)
    if sent is None:
        return None, LOST if at < person.passed else NOT_ASKED
    if question.id not in sent["values"]:
        return None, NOT_ASKED
    value = sent["values"][question.id]
    if row is not None and isinstance(value, Mapping) and value != NOT_SAID:
        value = value.get(row)
    if value is None:
        return None, SKIPPED
    return (None, REFUSED) if value == NOT_SAID else (value, None)


def _number_as_typed(person: PersonAnswers, step: Step, question: SurveyQuestion) -> str | None:
    found: Mapping[str, str] = person.answers.get(step.key, {}).get("typed", {})
    return found.get(question.id)


# ---- A row an answer -------------------------------------------------------

SURVEYS = (
    PARTICIPANT,
    WAVE,
    DATA,
    Column("step", "text", "Where it was asked.", "survey start | survey after match 1 | survey end | partner | …",
           lambda row: row.found.step.key),
    Column("match", "integer", "After which match that counts.", "from 0; empty elsewhere",
           lambda row: row.found.step.number),
    Column("block", "integer", "In or after which block.", "from 0; empty elsewhere", lambda row: row.found.step.block),
    Column("question", "text", "The id of the question.", "as in the design", lambda row: row.found.question),
    Column("kind", "text", "The kind of its answer.",
           "number | text | choice | choices | scale | matrix | slider | outside", lambda row: row.found.kind),
    Column("row", "text", "The row of a matrix.", "as in the design; empty for other questions",
           lambda row: row.found.row),
    Column("answer", "text", "The answer; several choices as a list in JSON.", "empty where it is missing",
           lambda row: row.found.answer),
    Column("missing", "text", "Why there is no answer.",
           "; ".join([*(f"{name}: {reason}" for name, reason in REASONS.items()), "empty where there is one"]),
           lambda row: row.found.missing),
    Column("typed", "text", "A number as the person wrote it.", "1,200; empty for other questions",
           lambda row: row.found.typed),
)  # fmt: skip


class SurveyRow(NamedTuple):
    """A row of surveys.csv."""

    participant: str
    wave: str
    data: str
    found: AnsweredQuestion


def survey_rows(people: Iterator[PersonAnswers], *, public: bool) -> Iterator[SurveyRow]:
    """The rows of surveys.csv."""
    for person in people:
        for found in answered(person, public=public):
            yield SurveyRow(person.participant, person.wave, person.data, found)


# ---- A row a person --------------------------------------------------------


AnswerKey = tuple[str, str | None, int | None, int | None]


class AnswersRow(NamedTuple):
    """A row of answers.csv: the answers, or the codes of missing ones, by column."""

    participant: str
    wave: str
    data: str
    cells: Mapping[AnswerKey, Any]


def answer_columns(scope: ExportScope) -> list[Column]:
    """The columns of answers.csv: one for each time a question is asked."""
    found: dict[AnswerKey, Column] = {}
    for design in scope.designs.values():
        for step, question, row in questions_asked(design):
            key = _answer_key(step, question.id, row)
            line = "" if question.matrix is None else f" {question.matrix.rows[row or '']}"
            kind = "integer" if question.kind in ("scale", "matrix", "slider") else "text"
            name = answer_name(step, question.id, row)
            found.setdefault(key, Column(name, kind, question.ask + line, _allowed_values(question), _cell_reader(key)))
    return [PARTICIPANT, WAVE, DATA, *found.values()]


def answer_rows(people: Iterator[PersonAnswers], *, public: bool) -> Iterator[AnswersRow]:
    """The rows of answers.csv."""
    for person in people:
        cells = {
            _answer_key(found.step, found.question, found.row): (
                _escaped(found.answer) if found.missing is None else CODES[found.missing]
            )
            for found in answered(person, public=public)
        }
        yield AnswersRow(person.participant, person.wave, person.data, cells)


def _escaped(answer: Any) -> Any:
    """The answer, with one more full stop before it if it is a missing answer's code, or one after further full
    stops.
    """
    return f".{answer}" if isinstance(answer, str) and _LIKE_A_CODE.fullmatch(answer) else answer


def _cell_reader(key: AnswerKey) -> Any:
    return lambda row: row.cells.get(key, CODES[NOT_ASKED])


def _answer_key(step: Step, question: str, row: str | None) -> AnswerKey:
    """A unique key of an answer: a question `a_b` has the same column name as row `b` of `a`."""
    return question, row, step.number, step.block


def _allowed_values(question: SurveyQuestion) -> str:
    if question.number is not None:
        values = f"from {question.number[0]:g} to {question.number[1]:g}"
    elif question.choice is not None:
        values = " | ".join(question.choice)
    elif question.choices is not None:
        values = f"a list of: {' | '.join(question.choices)}"
    elif question.slider is not None:
        values = f"from {question.slider.least} to {question.slider.most}"
    else:
        points = question.scale or (question.matrix.scale if question.matrix is not None else None)
        values = "a text" if points is None else f"from 1 to {points}"
    ends = next((each.ends for each in (question, question.slider, question.matrix) if each and each.ends), None)
    told = values if ends is None else f"{values} ({ends[0]} to {ends[1]})"
    checked = f"; {question.attention} shows attention" if question.attention is not None else ""
    codes = ", ".join(f"{code} {name}" for name, code in CODES.items())
    escaped = f"; {ESCAPED}" if question.kind in (*_IN_OWN_WORDS, "choice") else ""
    return f"{told}{checked}; {codes}{escaped}"


# ---- Quizzes ---------------------------------------------------------------


class QuizRow(NamedTuple):
    """An attempt at a quiz."""

    participant: str
    wave: str
    data: str
    step: Step
    attempt: int
    answers: Sequence[Any]
    right: bool
    at: str


QUIZZES = (
    PARTICIPANT,
    WAVE,
    DATA,
    Column("block", "integer", "Before which block.", "from 0", lambda row: row.step.block),
    Column("attempt", "integer", "The number of the attempt.", "from 1"),
    Column("answers", "json", "The answer to each question.", "a list, in the order of the design"),
    Column("right", "boolean", "Whether all answers were right.", "true | false"),
    Column("at", "time", "When it was sent.", "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z",
           lambda row: datetime.fromisoformat(row.at)),
)  # fmt: skip


def quiz_rows(people: Iterator[PersonAnswers]) -> Iterator[QuizRow]:
    """The rows of quizzes.csv."""
    for person in people:
        for step, attempts in quiz_attempts(person.design, person.answers):
            for number, attempt in enumerate(attempts, 1):
                yield QuizRow(
                    person.participant, person.wave, person.data, step, number, attempt["answers"], attempt["right"],
                    attempt["at"],
                )  # fmt: skip


def quiz_attempts(design: StudyDesign, answers: Mapping[str, Any]) -> Iterator[tuple[Step, Sequence[Any]]]:
    """The attempts at each quiz that a person came to."""
    for step in steps(design):
        if step.kind == QUIZ and step.key in answers:
            yield step, answers[step.key]["values"].get("attempts", [])
