"""The quiz: the questions of an attempt, the order of their options, and whether all answers are right. Pure.

Questions that were answered right are not asked again. Options are shuffled by a seed, in a new order at each attempt.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.core.errors import Invalid, Phrase
from app.studies.arms import Condition
from app.studies.checks import factor_of_answer
from app.studies.design import Answer, AskedOnce, Quiz, QuizQuestion, StudyDesign

Attempts = Sequence[Mapping[str, Any]]  # {"at", "answers": one for each question, "right": whether all are}


class AskedQuestion(NamedTuple):
    """A question as a page shows it. `right`: the right answer, once given; `wrong`: the previous wrong answer."""

    number: int  # from 0
    name: str  # of its form field
    ask: str
    options: Sequence[str]
    right: str | None
    wrong: str | None


class QuizState(NamedTuple):
    """A quiz at the current attempt. `attempt` counts from 0."""

    questions: Sequence[AskedQuestion]
    attempt: int
    attempts: int

    @property
    def left(self) -> int:
        """How many attempts are left, this one included."""
        return self.attempts - self.attempt

    @property
    def right(self) -> int:
        """How many questions were answered right before."""
        return sum(question.right is not None for question in self.questions)


def quiz_state(design: StudyDesign, quiz: Quiz, condition: Condition, attempts: Attempts, seed: object) -> QuizState:
    """The current state of the quiz. `attempts` are the previous ones."""
    asked = []
    for number, question in enumerate(quiz.questions):
        given = [attempt["answers"][number] for attempt in attempts]
        last = str(given[-1]) if given else None
        right_at = _right_at(design, question, condition, given)
        known = right_at is not None
        variant = _asked_at(question, len(attempts) if right_at is None else right_at)
        options = _all_answers(design, variant, condition)
        random.Random(f"{seed}/{number}/{len(attempts)}").shuffle(options)
        asked.append(
            AskedQuestion(
                number, f"q{number + 1}", variant.ask, [str(each) for each in options],
                last if known else None, None if known else last,
            )
        )  # fmt: skip
    return QuizState(asked, len(attempts), quiz.attempts)


def read_answers(state: QuizState, form: Mapping[str, str]) -> list[str]:
    """The answers in a form, one for each question. Raises Invalid for an unanswered question."""
    answers = []
    for question in state.questions:
        sent = form.get(question.name, "")
        if question.right is not None:
            answers.append(question.right)
        elif sent.isascii() and sent.isdigit() and int(sent) < len(question.options):
            answers.append(question.options[int(sent)])
        else:
            raise Invalid(question.name, expected=Phrase("one of the answers"), got=sent)
    return answers


def are_right(
    design: StudyDesign, quiz: Quiz, condition: Condition, attempts: Attempts, answers: Sequence[str]
) -> bool:
    """Whether all answers of an attempt are right. `attempts` are the previous ones."""
    given = [*(attempt["answers"] for attempt in attempts), answers]
    return all(
        _right_at(design, question, condition, [each[number] for each in given]) is not None
        for number, question in enumerate(quiz.questions)
    )


def right_values(
    design: StudyDesign, quiz: Quiz, condition: Condition, attempts: Attempts, state: QuizState
) -> dict[str, str]:
    """The form values that answer everything right, by field name, for programs that try out a study."""
    return {
        asked.name: str(asked.options.index(str(_right_of(design, _asked_at(question, len(attempts)), condition))))
        for asked, question in zip(state.questions, quiz.questions, strict=True)
        if asked.right is None
    }


def _right_at(design: StudyDesign, question: QuizQuestion, condition: Condition, given: Sequence[Any]) -> int | None:
    """The attempt at which a question was answered right; it was not asked again after that."""
    for at, answer in enumerate(given):
        if str(answer) == str(_right_of(design, _asked_at(question, at), condition)):
            return at
    return None


def _asked_at(question: QuizQuestion, attempt: int) -> AskedOnce:
    """The wording of a question at an attempt: the original, or the next alternative."""
    wordings = [question, *question.again]
    return wordings[min(attempt, len(wordings) - 1)]


def _right_of(design: StudyDesign, asked: AskedOnce, condition: Condition) -> Answer:
    if not isinstance(asked.right, dict):
        return asked.right
    factor = factor_of_answer(design, asked.right)
    return asked.right[condition[factor or ""]]


def _all_answers(design: StudyDesign, asked: AskedOnce, condition: Condition) -> list[Answer]:
    """The right answer, those that are right under another condition, and the wrong ones."""
    rights = list(asked.right.values()) if isinstance(asked.right, dict) else [asked.right]
    return list(dict.fromkeys([_right_of(design, asked, condition), *rights, *asked.wrong]))
