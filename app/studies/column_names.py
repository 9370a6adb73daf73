"""The names of a design's columns in exports: one for each outcome and each time a question is asked.

Names that statistics programs would reject are exported under others (`app/core/csv_tables.py`). Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from app.core.csv_tables import short_names
from app.studies.arms import conditions
from app.studies.design import StudyDesign, SurveyQuestion
from app.studies.participant_steps import SURVEY, Step, steps

UTILITY = "utility"  # the figure that always has outcomes


def outcome_name(figure: str, condition: Mapping[str, str]) -> str:
    """`utility_a_self`: the figure and the labels of the condition."""
    return "_".join([figure, *(re.sub(r"\W+", "_", label) for label in condition.values())])


def answer_name(step: Step, question: str, row: str | None) -> str:
    """The question's id, with the row of a matrix and the match or block after which it was asked."""
    name = question if row is None else f"{question}_{row}"
    if step.number is not None:
        return f"{name}_match_{step.number + 1}"
    return name if step.block is None else f"{name}_block_{step.block + 1}"


def rows_of(question: SurveyQuestion) -> Sequence[str | None]:
    """The parts of a question that have their own columns: the rows of a matrix."""
    return [None] if question.matrix is None else list(question.matrix.rows)


def questions_asked(design: StudyDesign) -> Iterator[tuple[Step, SurveyQuestion, str | None]]:
    """Each time a question, or a row of a matrix, is asked."""
    for step in steps(design):
        if step.kind == SURVEY and step.part is not None:
            for question in design.survey.parts[step.part]:
                for row in rows_of(question):
                    yield step, question, row


def renamed_outcomes(design: StudyDesign, figures: Sequence[str]) -> Mapping[str, str]:
    """The names of outcomes that exports replace, each with its new name."""
    return _shortened_names([outcome_name(figure, each) for figure in figures for each in conditions(design)])


def renamed_answers(design: StudyDesign) -> Mapping[str, str]:
    """The names of answers that exports replace, each with its new name."""
    return _shortened_names([answer_name(step, question.id, row) for step, question, row in questions_asked(design)])


def _shortened_names(names: Sequence[str]) -> Mapping[str, str]:
    return {old: new for old, new in zip(names, short_names(names), strict=True) if old != new}
