"""The steps of a person in a study, in order. Pure.

All persons of a design have the same steps; the conditions of matches are drawn, not their number. A step is one page,
and its answers are stored under its `key`.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from app.studies.arms import blocks_a_person, matches_a_person
from app.studies.checks import OBJECTIVE
from app.studies.design import COMPUTER, EACH_BLOCK, StudyDesign

StepKind = Literal["consent", "survey", "instructions", "quiz", "practice", "match", "partner", "debrief", "done"]
CONSENT: StepKind = "consent"
SURVEY: StepKind = "survey"
INSTRUCTIONS: StepKind = "instructions"
QUIZ: StepKind = "quiz"
PRACTICE: StepKind = "practice"
MATCH: StepKind = "match"
PARTNER: StepKind = "partner"  # whether the partners were people or models, asked once
DEBRIEF: StepKind = "debrief"
DONE: StepKind = "done"


class Step(NamedTuple):
    """A page of a study. `block` and `number` count from 0, `number` among all matches that count or practice matches.

    `part` is the key of the survey in the design.
    """

    kind: StepKind
    key: str
    block: int | None = None
    number: int | None = None
    part: str | None = None


def steps(design: StudyDesign) -> tuple[Step, ...]:
    """All steps; the last is `done`."""
    return tuple(_in_order(design))


def shows_arm(design: StudyDesign, step: Step) -> bool:
    """Whether a page depends on the arm, which must then be drawn before it.

    That is the first match, or an earlier page if the instructions or the quiz depend on an objective, or a quiz answer
    depends on a level.
    """
    if step.kind in (PRACTICE, MATCH):
        return True
    if step.kind == QUIZ and design.quiz is not None:
        asked = [wording for question in design.quiz.questions for wording in (question, *question.again)]
        if any(isinstance(wording.right, dict) for wording in asked):
            return True
    return step.kind in (INSTRUCTIONS, QUIZ) and OBJECTIVE in design.conditions


def _in_order(design: StudyDesign) -> Iterator[Step]:
    survey = design.survey
    yield Step(CONSENT, "consent")
    if survey.start:
        yield Step(SURVEY, "survey start", part="start")
    for block in range(blocks_a_person(design)):
        yield from _before_block(design, block)
        yield from _matches(design, block)
        if survey.after_each_block:
            yield Step(SURVEY, f"survey after block {block + 1}", block, part="after each block")
    if survey.end:
        yield Step(SURVEY, "survey end", part="end")
    if design.partner_told != COMPUTER:
        yield Step(PARTNER, "partner")
    yield Step(DEBRIEF, "debrief")
    yield Step(DONE, "done")


def _before_block(design: StudyDesign, block: int) -> Iterator[Step]:
    quiz, plan = design.quiz, design.plan
    if block == 0 or (plan.blocks is not None and plan.blocks.by == OBJECTIVE):
        yield Step(INSTRUCTIONS, f"instructions {block + 1}", block)
    if quiz is not None and (block == 0 or quiz.before == EACH_BLOCK):
        yield Step(QUIZ, f"quiz {block + 1}", block)
    if block == 0 and plan.practice is not None:
        for number in range(plan.practice.matches):
            yield Step(PRACTICE, f"practice {number + 1}", block, number)


def _matches(design: StudyDesign, block: int) -> Iterator[Step]:
    each = matches_a_person(design) // blocks_a_person(design)
    for number in range(block * each, (block + 1) * each):
        yield Step(MATCH, f"match {number + 1}", block, number)
        if design.survey.after_each_match:
            yield Step(SURVEY, f"survey after match {number + 1}", block, number, "after each match")
