"""Points that the author of a design should consider before people come. Pure."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from app.core.errors import shown
from app.core.validation import KeyPath
from app.studies import placeholders
from app.studies.arms import arms, attention_checks, blocks_a_person, conditions, matches_a_person
from app.studies.checks import MODEL, OBJECTIVE
from app.studies.column_names import UTILITY, renamed_answers, renamed_outcomes
from app.studies.cost import earned_at_most, points_of, stakes_of
from app.studies.design import EACH_BLOCK, HIDDEN, StudyDesign
from app.studies.endings import (
    BY_TIME,
    COMPLETED,
    INACTIVE,
    NO_BASE,
    NO_BONUS,
    PROLIFIC,
    QUIZ_FAILED,
    REMOVED,
    TECHNICAL,
    WITHDRAWN,
    EndingName,
)

GOAL = "{goal}"
_NAMED = 3  # columns that a warning names
_FEW_MINUTES = 5
# People with these endings have read, answered or played before. After that, nobody ends because of a partner or on
# entry.
_AFTER_WORK: tuple[EndingName, ...] = (QUIZ_FAILED, WITHDRAWN, INACTIVE, TECHNICAL, REMOVED, COMPLETED)
_PERSONAL = ("name", "email", "mail", "phone", "address", "birthday", "birth_date", "prolific_id", "worker_id")
_ONE_PARTNER = re.compile(r"partner(?!s|n)", re.IGNORECASE)  # in English and in German
_UNEQUAL = Decimal("1.5")  # how many times as much one objective may pay at most as another


class Warned(NamedTuple):
    """A point to consider, and where it is."""

    path: KeyPath
    text: str


def warnings(design: StudyDesign, texts: Mapping[str, str]) -> Iterator[Warned]:
    """All warnings about a design without faults and about its texts, starting with what is not filled in."""
    for each in placeholders.in_design(design, texts):
        where = f" in {each.file}" if each.file else ""
        yield Warned(each.path, f"{shown(each.words)}{where} is not your own, and no wave opens with it")
    yield from _assignment(design)
    if design.partner_told == HIDDEN:
        yield Warned(("partner_told",), "partners are models, and people in the EU have to be told that they talk to a"
                     " machine (EU AI Act, article 50(1), since 2 August 2026): ask your ethics board")  # fmt: skip
    if OBJECTIVE in design.conditions and GOAL not in texts[design.instructions]:
        yield Warned(("instructions",), f"the objective differs, and {GOAL} is not in the text that explains it")
    if design.quiz is not None and design.quiz.attempts == 1:
        yield Warned(("quiz", "attempts"), "recruiters expect a second attempt before somebody is sent away")
    yield from _survey_warnings(design)
    yield from _stakes(design)
    yield from _endings(design)
    yield from _column_name_warnings(design)


def _column_name_warnings(design: StudyDesign) -> Iterator[Warned]:
    """Columns that exports rename because statistics programs do not accept their names."""
    figures = tuple(dict.fromkeys((UTILITY, design.analysis.outcome)))
    renamed = {("conditions",): renamed_outcomes(design, figures), ("survey",): renamed_answers(design)}
    for path, names in renamed.items():
        if names:
            told = ", ".join(f"{old} ({new})" for old, new in list(names.items())[:_NAMED])
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield Warned(path, "statistics programs take 32 letters, digits and underscores, so exports shorten the"
                         f" names of columns: {told}{more}")  # fmt: skip


def _endings(design: StudyDesign) -> Iterator[Warned]:
    """Endings after work that pay nothing for it: all that can follow a match, and a failed quiz."""
    if not design.pay.base:
        yield Warned(("pay", "base"), "it is 0, so that nobody is paid for their time")
    for name in _AFTER_WORK:
        if name == QUIZ_FAILED and design.quiz is None:
            continue
        ending, path = design.ending(name, PROLIFIC), ("endings", name)
        earns = name != QUIZ_FAILED or _has_quiz_after_matches(design)
        if ending.base in (NO_BASE, Decimal(0)) and not ending.least:
            lost = ", not even what they have earned" if earns and ending.bonus == NO_BONUS else ""
            yield Warned(path, f"people get nothing for the time until then{lost}")
        elif earns and ending.bonus == NO_BONUS:
            yield Warned(path, "what people have earned until then is not paid")
        elif ending.base == BY_TIME and name in (QUIZ_FAILED, WITHDRAWN) and design.minutes < _FEW_MINUTES:
            yield Warned(path, "pay by time comes to a few cents in so short a study")


def _has_quiz_after_matches(design: StudyDesign) -> bool:
    return design.quiz is not None and design.quiz.before == EACH_BLOCK and blocks_a_person(design) > 1


def _assignment(design: StudyDesign) -> Iterator[Warned]:
    count = len(arms(design))
    if count > 1 and matches_a_person(design) == 1 and design.plan.within:
        yield Warned(("plan", "within"), "everybody plays one match, so nothing differs within a person")
    if design.material is not None and not design.material.held_out:
        yield Warned(("material", "held_out"), "models may be trained on what people play here")


def _survey_warnings(design: StudyDesign) -> Iterator[Warned]:
    questions = design.survey.all
    if attention_checks(design) == 1 and design.minutes > _FEW_MINUTES:
        yield Warned(("survey",), "one attention check in more than five minutes: nobody may be rejected for it alone")
    if (partners := _partners_in_a_block(design)) > 1:
        for question in design.survey.after_each_block:
            if _ONE_PARTNER.search(question.ask):
                text = f"{question.id} asks about one partner, and a block has {partners}: ask after each match"
                yield Warned(("survey", "after each block"), text)
    for question in questions:
        if question.id in _PERSONAL:
            yield Warned(("survey",), f"{question.id} asks for personal data, which recruiters forbid")


def _partners_in_a_block(design: StudyDesign) -> int:
    by = design.plan.blocks.by if design.plan.blocks else None
    return len(design.levels(MODEL)) if MODEL in design.plan.within and by != MODEL else 1


def _stakes(design: StudyDesign) -> Iterator[Warned]:
    highest: dict[str, Decimal] = {}
    negative: dict[str, None] = {}
    for condition in conditions(design):
        stakes, span = stakes_of(design, condition), points_of(design, condition)
        objective = condition.get(OBJECTIVE, "")
        if span.least < 0 and stakes.endowment == 0 and stakes.per_point:
            negative[objective] = None
        most = max(stakes.endowment + stakes.per_point * points for points in span)
        highest[objective] = max(most, highest.get(objective, Decimal(0)))
    if negative:
        under = f"under {', '.join(negative)} " if OBJECTIVE in design.conditions else ""
        yield Warned(("pay", "bonus"), f"{under}points may be negative, and a floor without an endowment pays nothing")
    low, high = min(highest, key=highest.__getitem__), max(highest, key=highest.__getitem__)
    if highest[low] and highest[high] > highest[low] * _UNEQUAL:
        times = highest[high] / highest[low]
        yield Warned(("pay", "bonus"), f"{high} can pay {times:.3g} times what {low} can: set by_objective")
    if (earned := earned_at_most(design)) > design.pay.most_a_person:
        yield Warned(("pay", "most_a_person"), f"up to {earned} can be earned where models fail, which is more")
