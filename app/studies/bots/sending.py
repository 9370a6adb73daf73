"""Sends bots through a wave of a running Parlor, at most a bearable number at once."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import Engine

from app.core.extensions import reading
from app.studies.answers import due_questions, quiz_now
from app.studies.bots.bot import Bot
from app.studies.bots.notes import HABITS, BotNotes
from app.studies.participant_steps import QUIZ, SURVEY
from app.studies.progress import StudyProgress, find_progress_by_token
from app.studies.quiz import right_values

AT_ONCE = 20
Keep = Callable[[BotNotes], None]


async def send_bots(
    engine: Engine,
    server: str,
    link: str,
    numbers: Iterable[int],
    seed: int,
    keep: Keep,
    *,
    habits: Sequence[str] = HABITS,
    at_once: int = AT_ONCE,
) -> None:
    """Send the bots with these numbers in by `link`; `keep` receives the notes of each bot that has finished.

    A bot's number identifies the same person each time it is sent, and it continues where it was.
    """
    turnstile = asyncio.Semaphore(at_once)

    def answers(token: str) -> Mapping[str, str]:
        with reading(engine) as session:
            return right_answers(find_progress_by_token(session, token))

    async def one(number: int) -> None:
        bot = Bot(server, f"{link}bot-{seed}-{number}", number, habits[number % len(habits)], seed, answers)
        async with turnstile:
            keep(await bot.run())

    async with asyncio.TaskGroup() as group:
        for number in numbers:
            group.create_task(one(number))


def right_answers(progress: StudyProgress) -> dict[str, str]:
    """A careful reader's answers to the due page, by field: those of quizzes and attention checks."""
    design, step = progress.design, progress.step
    if step.kind == SURVEY:
        return {each.id: str(each.attention) for each in due_questions(progress) if each.attention is not None}
    if step.kind != QUIZ or design.quiz is None or progress.enrolment.ending is not None:
        return {}
    return right_values(design, design.quiz, progress.condition or {}, progress.quiz_attempts, quiz_now(progress))
