"""Assessments and alignments for tests, of members that answer at once."""

import asyncio
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, update

from app.alignments import lifecycle as alignments
from app.alignments import steps
from app.alignments.job import ALIGNMENT
from app.alignments.spec import AlignmentSpec
from app.assessments import lifecycle
from app.assessments.job import ASSESSMENT
from app.assessments.runner import run_assessment
from app.assessments.spec import AssessmentSpec
from app.assessments.training_overlap import held_out
from app.core.config import Settings
from app.core.extensions import reading, writing
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.models import Assessment, SocietyAgent
from app.society.job import SOCIETY
from app.society.material import QuestionList
from tests.campaigns import pretend_trained
from tests.societies import PRIORS, QUESTIONS
from tests.societies import run as run_society

GUESTS = ("a friend", "a neighbour", "a teacher", "a child", "my cousin", "a colleague", "an aunt", "a guest",
          "a stranger", "my boss", "a team", "a choir")  # fmt: skip


def make_assessment(
    engine: Engine,
    model: str,
    base: str,
    *raters: str,
    home: Path = Path(),
    questions: Sequence[str] = QUESTIONS.questions,
    seed: int = 1,
    **budget: Any,
) -> int:
    """An assessment that waits; gives its number."""
    spec = AssessmentSpec.read({"model": model, "base": base, "raters": raters, "seed": seed, **budget})
    with reading(engine) as session:
        found = held_out(session, home, (model, base), questions)
    with writing(engine) as session:
        return lifecycle.create(session, spec, QuestionList("a test", questions), found, queued=False).id


def make_alignment(engine: Engine, base: str, name: str, **wanted: Any) -> int:
    """An alignment without demonstrations that waits; gives its number."""
    world = {"size": 2, "critics": 2, "first_memories": 2, **wanted.pop("society", {})}
    members = {"base": base, "observers": ["scripted-observer"], "name": name}
    spec = AlignmentSpec.read({**members, "society": world, **wanted})
    held = QuestionList("a test", [f"What is the best way to say goodbye to {who}?" for who in GUESTS])
    with writing(engine) as session:
        return alignments.create(session, spec, QUESTIONS, PRIORS, held, queued=False).id


def carry_on(engine: Engine, settings: Settings, number: int, jobs: int) -> AwaitedJob | None:
    """Carry an alignment through so many of its jobs, whose models nobody can load; gives what it then waits for.

    So small a share gives the model that learns no agent; in the end it is said to be every other one. What it learns
    and answers is made up.
    """
    owner = JobContext(engine, settings, uuid.uuid4().hex)
    part = steps.take_steps(owner, number)
    for _ in range(jobs):
        assert part is not None
        if part.kind is SOCIETY:
            run_society(engine, settings, part.number)
        elif part.kind is TRAINING:
            pretend_trained(engine, part.number)
        else:
            pretend_rated(engine, part.number)
        part = steps.take_steps(owner, number)
    with writing(engine) as session:
        for step in ALIGNMENT.steps_of(session, number):
            if step.kind == SOCIETY.name and SOCIETY.get(session, step.number or 0).status == states.DONE:
                learner = SOCIETY.get(session, step.number or 0).agents[0]["model_id"]
                own = update(SocietyAgent).where(SocietyAgent.society_id == step.number, SocietyAgent.agent % 2 == 0)
                session.execute(own.values(model_id=learner))
    return part


def pretend_rated(engine: Engine, number: int) -> None:
    """Rate all answers of an assessment as if they had been given: those of the model are better, most of the time."""
    with writing(engine) as session:
        row = ASSESSMENT.get(session, number)
        answers = lifecycle.answers_of(session, number)
        for each in answers:
            better = 1.5 * (not each.of_base) * (each.question % 5 > 0)
            each.status, each.text = (
                lifecycle.DONE,
                f"{'So be it' if each.of_base else 'Gladly'}, number {each.question}.",
            )
            each.alignment = [3 + each.question % 3 + better for _ in row.raters]
            each.engagement = [4.0 - each.question % 2 + better / 3 for _ in row.raters]
        row.answers, row.ratings, row.status = len(answers), 2 * len(answers) * len(row.raters), states.DONE
        row.calls, row.ended_at = row.ratings + len(answers), datetime.now(UTC)


def run(engine: Engine, settings: Settings, number: int) -> Assessment:
    """Run an assessment as a worker does; gives its row."""
    asyncio.run(run_assessment(JobContext(engine, settings, uuid.uuid4().hex), number))
    with reading(engine) as session:
        return ASSESSMENT.get(session, number)
