"""All texts of a version of a study on one printable page, for the ethics board."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from flask import render_template
from flask_babel import force_locale
from markupsafe import Markup
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.extensions import reading
from app.models import Wave
from app.studies.arms import Condition, arms, conditions
from app.studies.checks import MODEL, OBJECTIVE
from app.studies.design import Questions, StudyDesign
from app.studies.markdown import ReadText
from app.studies.payments import recruiter_of
from app.studies.quiz import AskedQuestion, quiz_state
from app.studies.store import models_of
from app.studies.texts import goal_of, words_of
from app.web.admin.blueprint import blueprint
from app.web.admin.study_versions import FoundVersion, find_version
from app.web.study.blueprint import money
from app.web.study.page_context import consent_page
from app.web.study.page_texts import goal_words, html_of

_USUAL = "prolific"  # the recruiter of a study without a wave


class GoalTexts(NamedTuple):
    """The texts and questions for people under an objective; `arms` are those in which it occurs. None: there is only
    one.

    `again` are the quiz questions in the wording used after a wrong answer, if it differs.
    """

    objective: str | None
    arms: Sequence[str]
    instructions: ReadText
    quiz: Sequence[AskedQuestion]
    again: Sequence[AskedQuestion]


class SurveyPart(NamedTuple):
    """Questions, and the key of the design that says when they are asked."""

    when: str
    questions: Questions


@blueprint.get("/studies/<int:study_id>/texts")
def study_texts(study_id: int) -> str:
    """Consent with what Parlor adds to it, instructions and quiz under each objective, questions, and the debrief."""
    with reading() as session:
        found = find_version(session, study_id)
        design, texts = found.design, found.version.design["texts"]
        with force_locale(design.language):  # people's language, not that of whoever prints it
            words = {**words_of(design, partial(money, currency=design.pay.currency)), "goal": ""}
            goals = _goals(design, texts[design.instructions], words)
            consent, debrief = _consent(session, found), _debrief_html(session, found, words)
    return render_template(
        "admin/study-texts.html",
        **found._asdict(),
        consent=consent,
        goals=goals,
        surveys=[SurveyPart(*part) for part in design.survey.parts.items() if part[1]],
        debrief=debrief,
        arms=arms(design),
    )


def _consent(session: Session, found: FoundVersion) -> Markup:
    """The consent as it is shown to people sent by the recruiter of the latest wave, or by Prolific if there is
    none.
    """
    waves = select(Wave).where(Wave.study_version_id == found.version.id).order_by(Wave.id.desc()).limit(1)
    latest = session.scalar(waves)
    context = consent_page(session, found.version, _USUAL if latest is None else recruiter_of(latest))
    currency = found.design.pay.currency
    shown = render_template("admin/study-texts-consent.html", **context, design=found.design, currency=currency)
    return Markup(shown)  # noqa: S704 - a template of our own made it


def _debrief_html(session: Session, found: FoundVersion, words: Mapping[str, str]) -> Markup:
    """The final text: what people's partners were, what the author adds, and what is asked again."""
    name, pinned = found.design.consent.debrief, models_of(session, found.version)
    levels = found.design.levels(MODEL).values()
    shown = render_template(
        "admin/study-texts-debrief.html",
        design=found.design,
        text=None if name is None else html_of(found.version.design["texts"][name], words),
        kinds=list(dict.fromkeys(pinned[str(level)].kind for level in levels)),
    )
    return Markup(shown)  # noqa: S704 - a template of our own made it


def _other_wordings(design: StudyDesign, condition: Condition, asked: Sequence[AskedQuestion]) -> list[AskedQuestion]:
    """The other wordings of questions, in the order of their use after wrong answers."""
    found: list[AskedQuestion] = []
    if design.quiz is not None:
        for count in range(1, design.quiz.attempts):
            wrong = [{"answers": [None] * len(asked)}] * count
            state = quiz_state(design, design.quiz, condition, wrong, 0)
            seen = {(each.number, each.ask) for each in (*asked, *found)}
            found += [each for each in state.questions if (each.number, each.ask) not in seen]
    return found


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
        # It comes from a template of our own.
        instructions = html_of(text, {**words, "goal": told}, {"goal": Markup(shown)})  # noqa: S704
        named = [
            arm.name
            for arm in arms(design)
            if any(condition.get(OBJECTIVE) == objective for condition in arm.conditions)
        ]
        asked = quiz_state(design, design.quiz, condition, (), 0).questions if design.quiz else ()
        found.append(GoalTexts(objective, named, instructions, asked, _other_wordings(design, condition, asked)))
    return found
