"""What a sent form of a survey answers."""

from typing import Any

import pytest

from app.studies.design import SurveyQuestion
from app.studies.survey import NOT_SAID, SurveyAnswers, ordered, read_survey


def question(id: str = "q", **raw: Any) -> SurveyQuestion:  # noqa: A002 - as a design names it
    return SurveyQuestion.model_validate({"id": id, "ask": "What?", **raw}, strict=False)


def read(asked: SurveyQuestion, *sent: tuple[str, str]) -> SurveyAnswers:
    form: dict[str, list[str]] = {}
    for name, value in sent:
        form.setdefault(name, []).append(value)
    return read_survey((asked,), form, {})


AGE = question(number=(18, 110))
WORDS = question(text=10)
FRUIT = question(choice=("apple", "pear"))
FRUITS = question(choices=("apple", "pear", "plum"))
TRUST = question(scale=7)
MATRIX = question(matrix={"rows": {"fair": "It was fair.", "kind": "It was kind."}, "scale": 5})
SLIDER = question(slider={"least": -10, "most": 10})


@pytest.mark.parametrize(
    ("asked", "sent", "expected"),
    [
        (AGE, [("q", " 30 ")], 30),
        (AGE, [("q", "30.5")], 30.5),
        (AGE, [("q", "30,5")], 30.5),
        (WORDS, [("q", "one\r\ntwo ")], "one\ntwo"),
        (FRUIT, [("q", "pear")], "pear"),
        (FRUITS, [("q", "plum"), ("q", "apple")], ["apple", "plum"]),
        (TRUST, [("q", "7")], 7),
        (MATRIX, [("q.fair", "1"), ("q.kind", "5")], {"fair": 1, "kind": 5}),
        (SLIDER, [("q", "-10")], -10),
        (SLIDER, [("q", "0")], 0),
    ],
)
def test_an_answer_of_each_kind(asked: SurveyQuestion, sent: list[tuple[str, str]], expected: object) -> None:
    assert read(asked, *sent) == ({"q": expected}, {})


@pytest.mark.parametrize(
    ("asked", "sent", "expected"),
    [
        (AGE, "17", "a number from 18 to 110"),
        (AGE, "nan", "a number from 18 to 110"),
        (AGE, "9" * 100_000, "a number from 18 to 110"),
        (WORDS, "eleven chars", "at most 10 characters"),
        (FRUIT, "stone", "one of the answers"),
        (FRUITS, "stone", "at least one of the answers"),
        (TRUST, "8", "a whole number from 1 to 7"),
        (TRUST, "1.5", "a whole number from 1 to 7"),
        (SLIDER, "11", "a whole number from -10 to 10"),
    ],
)
def test_what_is_no_answer_is_refused(asked: SurveyQuestion, sent: str, expected: str) -> None:
    values, errors = read(asked, ("q", sent))
    assert values == {}
    assert f"expected {expected}, got" in errors["q"].message


@pytest.mark.parametrize("asked", [AGE, WORDS, FRUIT, FRUITS, TRUST, MATRIX, SLIDER])
def test_a_required_question_cannot_be_left_open_and_another_one_can(asked: SurveyQuestion) -> None:
    assert "got none" in read(asked).errors["q"].message
    assert read(asked.model_copy(update={"required": False})) == ({"q": None}, {})


def test_a_line_of_a_matrix_that_is_left_open_is_missing() -> None:
    assert "a number in each line" in read(MATRIX, ("q.fair", "1")).errors["q"].message
    optional = MATRIX.model_copy(update={"required": False})
    assert read(optional, ("q.fair", "1")).values == {"q": {"fair": 1, "kind": None}}


def test_who_prefers_not_to_say_has_answered() -> None:
    age = AGE.model_copy(update={"prefer_not_to_say": True})
    assert read(age, ("q.skip", "skip"), ("q", "")) == ({"q": NOT_SAID}, {})
    matrix = MATRIX.model_copy(update={"prefer_not_to_say": True})
    assert read(matrix, ("q.fair", "skip"), ("q.kind", "2")).values == {"q": {"fair": NOT_SAID, "kind": 2}}
    assert "q" in read(AGE, ("q.skip", "skip")).errors


def test_a_question_that_does_not_apply_is_not_asked_whatever_is_sent() -> None:
    first, second = question("same", choice=("yes", "no")), question("how", text=100, show_if="same = no")
    form = {"same": ["yes"], "how": ["not at all"]}
    assert read_survey((first, second), form, {}).values == {"same": "yes"}
    assert read_survey((second,), form, {"same": "no"}).values == {"how": "not at all"}
    assert read_survey((second,), form, {}).values == {}


def test_an_outside_survey_is_answered_by_coming_back() -> None:
    outside = question(outside={"url": "https://example.org/s"})
    assert "return from the other survey" in read(outside, ("q", "true")).errors["q"].message
    assert read_survey((outside,), {}, {}, ["q"]).values == {"q": True}


def test_options_are_shuffled_for_each_person_where_the_design_says_so() -> None:
    options = [f"option {number}" for number in range(8)]
    shuffled = question(choice=tuple(options), shuffle=True)
    assert ordered(options, FRUIT, "a person") == options
    assert ordered(options, shuffled, 1) == ordered(options, shuffled, 1)
    assert len({tuple(ordered(options, shuffled, seed)) for seed in range(10)}) > 5
