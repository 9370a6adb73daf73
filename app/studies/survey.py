"""Surveys: which questions apply, their order, and the answers in a submitted form. Pure.

A question's field has the question's id, a row of a matrix `id.row`. `SKIP` is sent if the person prefers not to say.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.core.errors import FieldError, Invalid, Phrase
from app.core.typed_numbers import ENGLISH, IN_DIGITS, read_typed_number
from app.studies.design import Questions, SurveyQuestion
from app.studies.expressions import ComparisonRule, read_comparison

SKIP = "skip"  # the field's value
NOT_SAID: Mapping[str, bool] = {"not_said": True}  # stored for a person who preferred not to say
OPEN = None  # stored for an optional question left open; questions not asked are missing

Values = Mapping[str, Any]


SurveyForm = Mapping[str, Sequence[str]]  # everything that a browser sent, by field


class SurveyAnswers(NamedTuple):
    """The valid answers by question id, and the errors of the others."""

    values: dict[str, Any]
    errors: dict[str, FieldError]


def ordered(options: Sequence[str], question: SurveyQuestion, seed: object) -> list[str]:
    """The options or rows of a question in a person's order."""
    found = list(options)
    if question.shuffle:
        random.Random(f"{seed}/{question.id}").shuffle(found)
    return found


def rule_of(question: SurveyQuestion) -> ComparisonRule | None:
    """The rule for asking a question; None if it is always asked."""
    return None if question.show_if is None else read_comparison(question.show_if)


def applies(question: SurveyQuestion, values: Values) -> bool:
    """Whether a question is asked, given a person's answers."""
    rule = rule_of(question)
    if rule is None:
        return True
    found = values.get(rule.name)
    return rule.holds(found if isinstance(found, str | int | float) else None)


def read_survey(
    questions: Questions, form: SurveyForm, earlier: Values, returned: Sequence[str] = (), language: str = ENGLISH
) -> SurveyAnswers:
    """The answers in a form. `earlier` are those of earlier surveys, `returned` the outside surveys that were left.

    Questions that do not apply are ignored, whatever was sent for them. `language` is the design's: it determines the
    thousands separator.
    """
    values: dict[str, Any] = {}
    errors: dict[str, FieldError] = {}
    for question in questions:
        if not applies(question, {**earlier, **values}):
            continue
        try:
            values[question.id] = _read_answer(question, form, returned, language)
        except FieldError as error:
            errors[question.id] = error
    return SurveyAnswers(values, errors)


def typed_numbers(questions: Questions, form: SurveyForm, values: Values) -> dict[str, str]:
    """The numbers among `values` as they were typed, by question id."""
    return {
        question.id: first_value(form, question.id)
        for question in questions
        if question.kind == "number" and isinstance(values.get(question.id), int | float)
    }


def _read_answer(question: SurveyQuestion, form: SurveyForm, returned: Sequence[str], language: str) -> Any:
    if question.prefer_not_to_say and first_value(form, f"{question.id}.skip") == SKIP:
        return dict(NOT_SAID)
    if question.kind == "outside":
        found: Any = question.id in returned
    elif question.kind == "number":
        found = _read_number(question, form, language)
    else:
        found = _READERS[question.kind](question, form)
    if found is None or found is False or found in ("", []):
        if question.required:
            raise Invalid(question.id, expected=_WANTED[question.kind], got=Phrase("none"))
        return OPEN
    return found


_WANTED = {
    "number": Phrase("a number"),
    "text": Phrase("some words"),
    "choice": Phrase("one of the answers"),
    "choices": Phrase("at least one of the answers"),
    "scale": Phrase("one of the numbers"),
    "matrix": Phrase("a number in each line"),
    "slider": Phrase("a place on the line"),
    "outside": Phrase("your return from the other survey by its last link"),
}


def first_value(form: SurveyForm, field: str) -> str:
    """The first value sent for a field; empty if none was."""
    return next(iter(form.get(field, ())), "")


def _read_number(question: SurveyQuestion, form: SurveyForm, language: str) -> float | int | None:
    sent = first_value(form, question.id)
    if not sent.strip():
        return None
    least, most = question.number or (0, 0)
    try:
        found = float(read_typed_number(sent, question.id, language))
        if not least <= found <= most:
            raise Invalid(question.id, expected=IN_DIGITS, got=sent)
    except Invalid:
        expected = Phrase("a number from %(least)s to %(most)s", least=f"{least:g}", most=f"{most:g}")
        remedy = Phrase("write it in digits alone, such as 1200 rather than 1,200 or 1.200")
        raise Invalid(question.id, expected=expected, got=sent, remedy=remedy) from None
    return int(found) if found.is_integer() else found


def _read_text(question: SurveyQuestion, form: SurveyForm) -> str | None:
    sent = first_value(form, question.id).replace("\r\n", "\n").strip()
    most = question.text or 0
    if len(sent) > most:
        raise Invalid(question.id, expected=Phrase("at most %(most)s characters", most=most), got=len(sent))
    return sent


def _read_single_choice(question: SurveyQuestion, form: SurveyForm) -> str | None:
    sent = first_value(form, question.id)
    if sent and sent not in (question.choice or ()):
        raise Invalid(question.id, expected=_WANTED["choice"], got=sent)
    return sent


def _choices(question: SurveyQuestion, form: SurveyForm) -> list[str]:
    sent = set(form.get(question.id, ()))
    options = question.choices or ()
    if sent - set(options):
        raise Invalid(question.id, expected=_WANTED["choices"], got=sorted(sent - set(options))[0])
    return [option for option in options if option in sent]


def _scale(question: SurveyQuestion, form: SurveyForm) -> int | None:
    return _point(question.id, first_value(form, question.id), 1, question.scale or 0)


def _slider(question: SurveyQuestion, form: SurveyForm) -> int | None:
    slider = question.slider
    return None if slider is None else _point(question.id, first_value(form, question.id), slider.least, slider.most)


def _matrix(question: SurveyQuestion, form: SurveyForm) -> dict[str, Any] | None:
    matrix = question.matrix
    if matrix is None:
        return None
    found: dict[str, Any] = {}
    for row in matrix.rows:
        sent = first_value(form, f"{question.id}.{row}")
        if question.prefer_not_to_say and sent == SKIP:
            found[row] = dict(NOT_SAID)
        else:
            found[row] = _point(question.id, sent, 1, matrix.scale)
    if all(value is None for value in found.values()):
        return None
    if question.required and None in found.values():
        raise Invalid(question.id, expected=_WANTED["matrix"], got=Phrase("none in one of them"))
    return found


def _point(field: str, sent: str, least: int, most: int) -> int | None:
    """A point that was selected, or typed if the page has no script."""
    if not sent.strip():
        return None
    try:
        found = read_typed_number(sent, field)
        if found != found.to_integral_value() or not least <= found <= most:
            raise Invalid(field, expected=IN_DIGITS, got=sent)
    except Invalid:
        expected = Phrase("a whole number from %(least)s to %(most)s", least=least, most=most)
        raise Invalid(field, expected=expected, got=sent) from None
    return int(found)


_READERS = {
    "text": _read_text, "choice": _read_single_choice, "choices": _choices,
    "scale": _scale, "matrix": _matrix, "slider": _slider,
}  # fmt: skip
