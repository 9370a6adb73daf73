"""The quiz: what is asked at each attempt, and what counts as right."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from app.core.config import ROOT
from app.core.errors import Invalid
from app.studies.design import StudyDesign
from app.studies.design_files import load_design
from app.studies.quiz import QuizState, are_right, quiz_state, read_answers

SELF, COOP = {"model": "a", "objective": "self"}, {"model": "a", "objective": "coop"}


@pytest.fixture(scope="module")
def design() -> StudyDesign:
    return load_design(ROOT / "data" / "studies" / "two-models" / "two-models.yaml").design


def state(design: StudyDesign, attempts: Sequence[Mapping[str, Any]] = (), condition: Any = None) -> QuizState:
    assert design.quiz is not None
    return quiz_state(design, design.quiz, condition or SELF, attempts, "somebody")


def attempt(*answers: str) -> dict[str, Any]:
    return {"at": "", "answers": list(answers), "right": False}


def test_the_options_are_shuffled_by_the_seed_and_hold_the_answers_of_other_goals(design: StudyDesign) -> None:
    (question,) = state(design).questions
    assert sorted(question.options, key=int) == ["2", "4", "6", "10", "24"]
    assert question == state(design).questions[0]
    assert design.quiz is not None
    orders = {tuple(quiz_state(design, design.quiz, SELF, (), seed).questions[0].options) for seed in range(20)}
    assert len(orders) > 5


def test_what_is_right_depends_on_the_goal(design: StudyDesign) -> None:
    assert design.quiz is not None
    assert are_right(design, design.quiz, SELF, (), ["6"])
    assert not are_right(design, design.quiz, COOP, (), ["6"])
    assert are_right(design, design.quiz, COOP, (), ["10"])


def test_the_second_attempt_has_other_numbers_and_says_what_was_answered(design: StudyDesign) -> None:
    (question,) = state(design, [attempt("10")]).questions
    assert question.ask == "You end with 3 points and your partner with 8. What is your score?"
    assert (question.right, question.wrong) == (None, "10")
    assert state(design, [attempt("10")]).left == 1
    assert design.quiz is not None
    assert are_right(design, design.quiz, SELF, [attempt("10")], ["3"])
    assert not are_right(design, design.quiz, SELF, [attempt("10")], ["6"])


def test_what_was_right_is_not_asked_again(design: StudyDesign) -> None:
    raw = json.loads(design.model_dump_json(by_alias=True))
    raw["quiz"]["questions"].append({"ask": "And now?", "right": "yes", "wrong": ["no"]})
    two = StudyDesign.model_validate_json(json.dumps(raw))
    before = [attempt("6", "no")]
    first, second = state(two, before).questions
    assert (first.right, first.ask.split(" points")[0]) == ("6", "You end with 6")
    assert (second.right, second.wrong) == (None, "no")
    answers = read_answers(state(two, before), {"q2": str(second.options.index("yes"))})
    assert answers == ["6", "yes"]
    assert two.quiz is not None
    assert are_right(two, two.quiz, SELF, before, answers)


@pytest.mark.parametrize("sent", ["", "5", "-1", "x", "²", "00000000000000000000009"])
def test_an_answer_that_is_none_of_the_options_is_refused(design: StudyDesign, sent: str) -> None:
    with pytest.raises(Invalid, match="q1: expected one of the answers"):
        read_answers(state(design), {"q1": sent})
