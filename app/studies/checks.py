"""Faults of a design that cannot be found in any single key alone. Pure."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from app.core.errors import FieldError, Invalid, Phrase, Verbatim, either
from app.core.validation import KeyPath
from app.games import find_game
from app.games.base import Game
from app.studies.arms import (
    MOST_ARMS,
    MOST_MATCHES,
    Condition,
    arm_count,
    arms,
    attention_checks,
    between,
    level_of,
    matches_a_person,
)
from app.studies.design import (
    COMPUTER,
    EACH_BLOCK,
    FILE_NAME,
    FORMS,
    HIDDEN,
    Answer,
    AskedOnce,
    StudyDesign,
    StudyMaterial,
    SurveyQuestion,
)
from app.studies.expressions import Numbers, Words, check_rule, read_comparison

MODEL, ROLE, OBJECTIVE, PROMPT = "model", "role", "objective", "prompt"
NO_PROMPT = "none"  # a level of the factor `prompt`
_NO_CONFIG = (MODEL, ROLE, PROMPT)  # factors that are not settings of the game
_LONGEST_LABEL, _LONGEST_ARM = 40, 80  # characters; the length that the table of arms has room for


class Fault(NamedTuple):
    """An error, and where it is."""

    path: KeyPath
    error: FieldError


def faults(design: StudyDesign) -> Iterator[Fault]:
    """The faults in a design itself, in the order of the file."""
    game = _game(design)
    if isinstance(game, Fault):
        yield game
        return
    for check in (
        _partner_told_faults,
        _factors,
        _levels,
        _plan,
        _material_faults,
        _quiz_faults,
        _survey_faults,
        _pay,
        _analysis,
    ):
        yield from check(design, game)


def condition_config(design: StudyDesign, condition: Condition) -> dict[str, Any]:
    """The game's config under a condition, without the values that are drawn for each match."""
    own = {factor: level_of(design, condition, factor) for factor in design.conditions if factor not in _NO_CONFIG}
    return {**design.same_for_all.game, **_limit(design, find_game(design.game)), **own}


def measures(design: StudyDesign) -> Mapping[str, Numbers]:
    """Measures of a person other than answers and the game's metrics; each has a column in analysis.csv."""
    return {
        "attention": Numbers(0, attention_checks(design), whole=True),  # the number of passed checks
        "minutes": Numbers(0),
        "pasted_share": Numbers(0, 1),
        "hidden_share": Numbers(0, 1),
        "quiz_attempts": Numbers(0, whole=True),
        "matches": Numbers(0, matches_a_person(design), whole=True),
        "utility": Numbers(),
    }


def answers(question: SurveyQuestion) -> Words | Numbers | None:
    """The possible answers to a question; None if an answer is not a single word or number."""
    if question.choice is not None or question.text is not None:
        return Words(question.choice or ())
    if question.number is not None:
        return Numbers(*question.number)
    if question.scale is not None:
        return Numbers(1, question.scale, whole=True)
    if question.slider is not None:
        return Numbers(question.slider.least, question.slider.most, whole=True)
    return None


def _game(design: StudyDesign) -> Game[Any] | Fault:
    try:
        return find_game(design.game)
    except FieldError as error:
        return Fault(("game",), error)


def _limit(design: StudyDesign, game: Game[Any]) -> dict[str, int]:
    """The maximum number of moves of a match in the form of the game's config."""
    moves = design.same_for_all.limits.moves
    if moves is None or game.limit_field is None:
        return {}
    name, each = game.limit_field
    return {name: moves // each}


def _invalid_at(path: KeyPath, expected: str, got: object, remedy: str | None = None) -> Fault:
    return Fault(path, Invalid(None, expected=expected, got=got, remedy=remedy))


def _partner_told_faults(design: StudyDesign, _game: Game[Any]) -> Iterator[Fault]:
    """What people are told about their partner must be true of every condition."""
    if design.partner_told not in (COMPUTER, HIDDEN) and design.deception is None:
        yield _invalid_at(
            ("partner_told",), "computer or hidden, as every partner is a model", design.partner_told,
            "a study that says otherwise names the approval of its ethics board under deception",
        )  # fmt: skip
    if design.partner_told != COMPUTER and design.consent.debrief is None:
        yield _invalid_at(
            ("consent", "debrief"), "a file that says what each partner was", Verbatim("none"),
            "people who were not told have to be debriefed",
        )  # fmt: skip


def _factors(design: StudyDesign, game: Game[Any]) -> Iterator[Fault]:
    known = (*_NO_CONFIG, *(name for name in game.fields if name not in game.drawn))
    for factor in design.conditions:
        levels = design.levels(factor)
        if factor not in known:
            yield _invalid_at(("conditions", factor), str(either(known)), factor)
        elif not levels:
            yield _invalid_at(("conditions", factor), "at least one level", Verbatim("none"))
        elif len(set(map(str, levels.values()))) < len(design.conditions[factor]):
            yield _invalid_at(("conditions", factor), "levels that differ", Verbatim("one twice"))
        if any(len(label) > _LONGEST_LABEL for label in levels):
            yield _invalid_at(
                ("conditions", factor), f"labels of at most {_LONGEST_LABEL} characters", Verbatim("a longer one"),
                "write {LABEL: LEVEL} for each",
            )  # fmt: skip
    if MODEL not in design.conditions:
        yield _invalid_at(("conditions",), "a model, the partner of people", Verbatim("none"))


def _levels(design: StudyDesign, game: Game[Any]) -> Iterator[Fault]:
    for factor in design.conditions:
        for at, (label, level) in enumerate(design.levels(factor).items()):
            place = label if isinstance(design.conditions[factor], dict) else at
            error = _fault_of_level(game, factor, level)
            if error is not None:
                yield Fault(("conditions", factor, place), error)
    try:
        game.config(design.same_for_all.game)
    except FieldError as error:
        yield Fault(("same_for_all", "game"), error)
    yield from _move_limit_faults(design, game)
    for name in design.same_for_all.game:
        if name in design.conditions or name in game.drawn:
            why = "which the conditions vary" if name in design.conditions else "of which each match has its own"
            yield _invalid_at(("same_for_all", "game", name), "what all matches share", Verbatim(f"{name}, {why}"))


def _move_limit_faults(design: StudyDesign, game: Game[Any]) -> Iterator[Fault]:
    """The maximum number of moves must be a limit that the game supports, and be given only once."""
    moves, path = design.same_for_all.limits.moves, ("same_for_all", "limits", "moves")
    if moves is None:
        return
    if game.limit_field is None:
        yield _invalid_at(path, "none, as this game has no such limit", moves)
        return
    name, each = game.limit_field
    if name in design.conditions or name in design.same_for_all.game:
        yield _invalid_at(path, f"{name} or the most moves", Verbatim("both"))
    try:
        game.config({name: moves // each})
    except FieldError as error:
        remedy = f"one {name} stands for {each} moves" if each > 1 else None
        yield Fault(path, Invalid(None, **{**error.parts, "subject": None, "remedy": remedy}))


def _fault_of_level(game: Game[Any], factor: str, level: object) -> FieldError | None:
    if factor == ROLE:
        roles = dict.fromkeys(game.roles)
        if len(roles) < 2:
            return Invalid(None, expected="no role, as both seats have the same", got=level)
        return None if level in roles else Invalid(None, expected=either(roles), got=level)
    if factor == MODEL:
        return None if isinstance(level, str) else Invalid(None, expected="the name of a model", got=level)
    if factor == PROMPT:
        expected = "a prompt as NAME@VERSION, or none"
        fits = isinstance(level, str) and (level == NO_PROMPT or re.fullmatch(r"[a-z0-9-]+@[1-9][0-9]*", level))
        return None if fits else Invalid(None, expected=expected, got=level)
    if factor not in game.fields:
        return None
    try:
        game.config({factor: level})
    except FieldError as error:
        return Invalid(None, **{**error.parts, "subject": None})
    return None


def _plan(design: StudyDesign, _game: Game[Any]) -> Iterator[Fault]:
    plan = design.plan
    for name in ("within", "between"):
        for at, factor in enumerate(getattr(plan, name)):
            if factor not in design.conditions:
                yield _invalid_at(("plan", name, at), str(either(design.conditions)), factor)
    listed = [*plan.within, *plan.between]
    for factor in design.conditions:
        if listed.count(factor) > 1:
            yield _invalid_at(("plan",), f"{factor} once", Verbatim("it twice"))
        elif factor not in listed and len(design.levels(factor)) > 1:
            yield _invalid_at(("plan",), f"{factor} under within or under between", Verbatim("it under neither"))
    if plan.blocks is not None and plan.blocks.by not in plan.within:
        yield _invalid_at(("plan", "blocks", "by"), "a factor that is within persons", plan.blocks.by)
    elif set(listed) <= set(design.conditions):
        yield from _arm_faults(design)


def _arm_faults(design: StudyDesign) -> Iterator[Fault]:
    if (matches := matches_a_person(design)) > MOST_MATCHES:
        yield _invalid_at(("plan",), f"at most {MOST_MATCHES} matches a person", matches)
        return
    if (count := arm_count(design)) > MOST_ARMS:
        yield _invalid_at(
            ("plan",), f"at most {MOST_ARMS} arms", count, "leave orders to chance (random) or take fewer levels"
        )
        return
    longest = max((arm.name for arm in arms(design)), key=len)
    if len(longest) > _LONGEST_ARM:
        yield _invalid_at(
            ("plan",), f"labels that make names of arms of at most {_LONGEST_ARM} characters", longest,
            "write {LABEL: LEVEL} with short labels for the conditions",
        )  # fmt: skip


def _material_faults(design: StudyDesign, game: Game[Any]) -> Iterator[Fault]:
    if design.material is None:
        return
    kind = game.material
    if kind is None:
        yield _invalid_at(("material",), "none, as this game is played on nothing", Verbatim("some"))
        return
    known = [kind.name, *StudyMaterial.model_fields]
    for name, file in design.material.others.items():
        if name != kind.name:
            near = get_close_matches(name, known, 1)
            yield _invalid_at(("material", name), near[0] if near else str(either(known)), Verbatim(name))
        elif not isinstance(file, str) or re.fullmatch(FILE_NAME, file) is None:
            yield _invalid_at(("material", name), FORMS[FILE_NAME], file)
    if design.material.yoked_to is not None:
        groups = [list(design.levels(factor)) for factor in between(design) if len(design.levels(factor)) > 1]
        levels = [level for group in groups for level in group]
        if design.material.yoked_to not in levels:
            expected = str(either(levels)) if levels else "none, as no factor with several levels is between persons"
            yield _invalid_at(("material", "yoked_to"), expected, design.material.yoked_to)


def _quiz_faults(design: StudyDesign, _game: Game[Any]) -> Iterator[Fault]:
    if design.quiz is None:
        return
    for at, question in enumerate(design.quiz.questions):
        yield from _right(design, question, ("quiz", "questions", at))
        for time, asked in enumerate(question.again):
            yield from _right(design, asked, ("quiz", "questions", at, "again", time))


def factor_of_answer(design: StudyDesign, right: Mapping[str, Answer]) -> str | None:
    """The factor by whose levels the right answers are given; None if there is none."""
    told = [each for each in design.conditions if set(design.levels(each)) <= set(right)]
    return max(told, key=lambda each: len(design.levels(each)), default=None)


def _right(design: StudyDesign, question: AskedOnce, where: KeyPath) -> Iterator[Fault]:
    if isinstance(question.right, dict) and design.quiz is not None:
        path, blocks = (*where, "right"), design.plan.blocks
        factor = factor_of_answer(design, question.right)
        if factor is None:
            yield _invalid_at(path, "one answer for each level of a factor", sorted(question.right))
            return
        in_blocks = design.quiz.before == EACH_BLOCK and blocks is not None and blocks.by == factor
        if factor in design.plan.within and len(design.levels(factor)) > 1 and not in_blocks:
            yield _invalid_at(path, "one answer, or blocks by that factor and the quiz before each block", factor)


def _survey_faults(design: StudyDesign, _game: Game[Any]) -> Iterator[Fault]:
    earlier: dict[str, Words | Numbers | None] = {}
    taken = measures(design)
    for name, questions in design.survey.parts.items():
        for at, question in enumerate(questions):
            path: KeyPath = ("survey", name, at)
            if question.id in earlier or question.id in taken:
                yield _invalid_at((*path, "id"), "an id of its own", question.id)
            if question.show_if is not None:
                yield from _rule(question.show_if, (*path, "show_if"), earlier, "the id of an earlier question")
            earlier[question.id] = answers(question)


def _rule(
    text: str, path: KeyPath, possible: Mapping[str, Words | Numbers | None], known: Phrase | str
) -> Iterator[Fault]:
    """The faults of a rule about the names in `possible`; `known` says which these are."""
    try:
        rule = read_comparison(text)
        if rule.name not in possible:
            raise Invalid(None, expected=known, got=rule.name)
        answer = possible[rule.name]
        if answer is None:
            raise Invalid(None, expected="a question of number, text, choice, scale or slider", got=rule.name)
        check_rule(rule, answer)
    except FieldError as error:
        yield Fault(path, error)


def _pay(design: StudyDesign, _game: Game[Any]) -> Iterator[Fault]:
    known = design.levels(OBJECTIVE) if OBJECTIVE in design.conditions else {}
    for name in design.pay.bonus.by_objective:
        if name not in known:
            expected = str(either(known)) if known else "none, as the conditions have no objective"
            yield _invalid_at(("pay", "bonus", "by_objective", name), expected, name)


def _analysis(design: StudyDesign, game: Game[Any]) -> Iterator[Fault]:
    metrics = list(game.metrics.columns)
    if design.analysis.outcome not in ("utility", *metrics):
        yield _invalid_at(("analysis", "outcome"), str(either(["utility", *metrics])), design.analysis.outcome)
    possible = {**measures(design), **{question.id: answers(question) for question in design.survey.all}}
    known = either(possible)
    for at, text in enumerate(design.analysis.exclude):
        yield from _rule(text, ("analysis", "exclude", at), possible, known)
