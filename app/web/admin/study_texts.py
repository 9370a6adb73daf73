"""All texts of a version of a study on one page to be printed, for the board that judges its ethics."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from flask import render_template
from flask_babel import force_locale
from markupsafe import Markup

from app.extensions import reading
from app.studies.arms import Condition, arms, conditions
from app.studies.checks import OBJECTIVE
from app.studies.design import Questions, StudyDesign
from app.studies.markdown import ReadText, read_text
from app.studies.quiz import AskedQuestion, quiz_state
from app.studies.texts import goal_of, words_of
from app.web.admin.blueprint import blueprint
from app.web.admin.study_versions import find_version
from app.web.study.blueprint import money
from app.web.study.page_texts import goal_words


class GoalTexts(NamedTuple):
    """What people under an objective read and are asked; `arms` are those in which it occurs. None: there is one."""

    objective: str | None
    arms: Sequence[str]
    instructions: ReadText
    quiz: Sequence[AskedQuestion]


class SurveyPart(NamedTuple):
    """Questions, and when they are asked: the key of the design."""

    when: str
    questions: Questions


@blueprint.get("/studies/<int:study_id>/texts")
def study_texts(study_id: int) -> str:
    """Consent, instructions and quiz under each objective, questions, debrief, and what each ending pays."""
    with reading() as session:
        found = find_version(session, study_id)
    design, texts = found.design, found.version.design["texts"]
    debrief = design.consent.debrief
    with force_locale(design.language):  # what people see, not who prints it
        words = {**words_of(design, partial(money, currency=design.pay.currency)), "goal": ""}
        goals = _goals(design, texts[design.instructions], words)
    survey = design.survey
    parts = (
        ("start", survey.start),
        ("after each match", survey.after_each_match),
        ("after each block", survey.after_each_block),
        ("end", survey.end),
    )
    return render_template(
        "admin/study-texts.html",
        **found._asdict(),
        consent=read_text(texts[design.consent.text], words),
        goals=goals,
        surveys=[SurveyPart(*part) for part in parts if part[1]],
        debrief=None if debrief is None else read_text(texts[debrief], words),
        arms=arms(design),
    )


def _goals(design: StudyDesign, text: str, words: Mapping[str, str]) -> list[GoalTexts]:
    """The instructions once for each objective, with its goal and its quiz."""
    first: dict[str | None, Condition] = {}
    for condition in conditions(design):
        first.setdefault(condition.get(OBJECTIVE), condition)
    found = []
    for objective, condition in first.items():
        goal = goal_of(design, condition)
        told = goal_words(goal)
        shown = render_template("study/goal.html", goal=goal, goal_words=told, currency=design.pay.currency)
        # A template of our own made it.
        instructions = read_text(text, {**words, "goal": told}, {"goal": Markup(shown)})  # noqa: S704
        named = [
            arm.name
            for arm in arms(design)
            if any(condition.get(OBJECTIVE) == objective for condition in arm.conditions)
        ]
        asked = quiz_state(design, design.quiz, condition, (), 0).questions if design.quiz else ()
        found.append(GoalTexts(objective, named, instructions, asked))
    return found
