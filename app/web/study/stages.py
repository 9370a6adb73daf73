"""A person's progress in words: the steps grouped into a few stages, as the top of each page shows them."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from flask_babel import gettext

from app.studies.arms import blocks_a_person, matches_a_person
from app.studies.participant_steps import CONSENT, DEBRIEF, DONE, INSTRUCTIONS, MATCH, PRACTICE, QUIZ, Step
from app.studies.progress import StudyProgress


class ProgressStage(NamedTuple):
    """A stage of a study. `state` is done, now or ahead; a title of games, such as “Games 1–2”, stays on one line."""

    title: str
    state: str
    of_games: bool


def stages(progress: StudyProgress) -> Sequence[ProgressStage]:
    """All stages, with the person's position."""
    titles = [(_stage_title(progress, step), _is_of_games(step)) for step in progress.steps]
    found, at = [], 0
    for (title, of_games), group in groupby(titles):
        count = len(list(group))
        state = "ahead" if at > progress.enrolment.step else "now" if at + count > progress.enrolment.step else "done"
        found.append(ProgressStage(title, state, of_games))
        at += count
    return found


def games_of_block(progress: StudyProgress, block: int) -> tuple[int, int]:
    """The numbers of the first and the last match of a block."""
    each = matches_a_person(progress.design) // blocks_a_person(progress.design)
    return block * each + 1, (block + 1) * each


def _stage_title(progress: StudyProgress, step: Step) -> str:
    block = step.block or 0
    if step.kind == CONSENT:
        return str(gettext("Consent"))
    if step.kind in (INSTRUCTIONS, QUIZ) and block:
        return str(gettext("New goal") if _has_instructions(progress, block) else gettext("Quiz"))
    if step.kind == INSTRUCTIONS:
        return str(gettext("How to play"))
    if step.kind == QUIZ:
        return str(gettext("Quiz"))
    if _is_of_games(step):
        first, last = games_of_block(progress, block)
        return _games_title(first, last)
    if step.kind == DEBRIEF:
        return str(gettext("About the study"))
    return str(gettext("Done") if step.kind == DONE else gettext("Questions"))


def _is_of_games(step: Step) -> bool:
    return step.kind in (PRACTICE, MATCH) or step.part == "after each match"


def _games_title(first: int, last: int) -> str:
    if first == last:
        return str(gettext("Game %(number)s", number=first))
    return str(gettext("Games %(first)s–%(last)s", first=first, last=last))


def _has_instructions(progress: StudyProgress, block: int) -> bool:
    return any(step.kind == INSTRUCTIONS and step.block == block for step in progress.steps)
