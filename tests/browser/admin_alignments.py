"""Assessments and alignments in every state, and the pages about them: for axe-core and for the screenshots."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect
from sqlalchemy import Engine, select, update
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.core.config import Settings
from app.core.extensions import reading, writing
from app.models import Alignment, AssessedAnswer, Assessment, LanguageModel, TrainingJob
from tests.assessments import carry_on, make_alignment, make_assessment, pretend_rated
from tests.campaigns import add_local
from tests.stack import Stack
from tests.tables import database, settings_of

BASE = "harbour-talks"
QUESTIONS = [f"What should a guest bring to a party of {number}?" for number in range(4, 24)]
WORLD = {"size": 5, "iterations": 4}
TIRED = "observer scripted-observer: expected a rating from 1 to 7, got none in 50 answers in a row"
NO_MEMORY = "CUDA out of memory; set batch lower or accumulation higher"


def furnish_alignments(parlor: Stack) -> dict[str, int]:
    """Alignments and assessments by what they show; made once."""
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:  # Playwright has the loop of this one
        return thread.submit(_furnish, engine, settings_of(parlor)).result()


def _furnish(engine: Engine, settings: Settings) -> dict[str, int]:
    with reading(engine) as session:
        known = dict(iter(session.execute(select(Alignment.name, Alignment.id))))
        last = session.scalar(select(Assessment.id).order_by(Assessment.id.desc()).limit(1))
    if "harbour-failed" not in known:
        _learner(engine, settings.home)
        for name, jobs in (("done", 4), ("training", 1), ("failed", 1)):
            known[f"harbour-{name}"] = _chain(engine, settings, f"harbour-{name}", jobs)
        _fail_training(engine, settings, known["harbour-failed"])
        _hold(engine, Alignment, known["harbour-training"])
        last = _assessments(engine, settings)
    assert last is not None
    found = {name.removeprefix("harbour-"): number for name, number in known.items()}
    named = {f"assessment-{name}": last - back for back, name in enumerate(("failed", "running", "done"))}
    return {**found, **named}


def _learner(engine: Engine, home: Path) -> None:
    folder = home / "checkpoints" / BASE
    folder.mkdir(parents=True, exist_ok=True)
    add_local(engine, BASE, str(folder))
    with writing(engine) as session:
        session.execute(update(LanguageModel).where(LanguageModel.name == BASE).values(usable_in_rounds=False))


def _chain(engine: Engine, settings: Settings, name: str, jobs: int) -> int:
    number = make_alignment(engine, BASE, name, agents={"scripted-agent": 1.0}, share=0.01, society=WORLD)
    carry_on(engine, settings, number, jobs)
    return number


def _fail_training(engine: Engine, settings: Settings, number: int) -> None:
    with writing(engine) as session:
        job = training_of(session, number)
        failed = {"status": "failed", "error": NO_MEMORY, "ended_at": datetime.now(UTC)}
        session.execute(update(TrainingJob).where(TrainingJob.id == job).values(**failed))
    carry_on(engine, settings, number, 0)


def training_of(session: Session, number: int) -> int | None:
    """The training on what the first society has rated."""
    return next((step.number for step in ALIGNMENT.steps_of(session, number) if step.name == "training"), None)


def _hold(engine: Engine, table: Any, number: int, **values: Any) -> None:
    """As if a worker were at it; its training is a third through."""
    until = datetime.now(UTC) + timedelta(hours=2)
    held = {"status": "running", "started_at": datetime.now(UTC), "lease_owner": "furnisher", "lease_until": until}
    with writing(engine) as session:
        session.execute(update(table).where(table.id == number).values(**held, **values))
        if table is Alignment:
            of_it = TrainingJob.id == training_of(session, number)
            session.execute(update(TrainingJob).where(of_it).values(**held, step=80, steps=240))


def _assessments(engine: Engine, settings: Settings) -> int:
    """One that is done, with two raters; one that runs; one that failed. Gives the number of the last."""
    raters = ("scripted-observer", "scripted-agent")
    done, running, failed = (
        make_assessment(engine, "harbour-done-aligned", BASE, *raters, home=settings.home, questions=QUESTIONS)
        for _ in range(3)
    )
    pretend_rated(engine, done)
    pretend_rated(engine, running)
    with writing(engine) as session:
        late = AssessedAnswer.assessment_id == running, AssessedAnswer.question >= 7
        session.execute(update(AssessedAnswer).where(*late).values(status="open", text=None))
        values = {"status": "failed", "error": TIRED, "ended_at": datetime.now(UTC)}
        session.execute(update(Assessment).where(Assessment.id == failed).values(**values))
    _hold(engine, Assessment, running, answers=14, ratings=56, calls=70, ended_at=None)
    return failed


# ---- The pages -----------------------------------------------------------------


def alignment_states(parlor: Stack, page: Page, found: Mapping[str, int]) -> Iterator[str]:
    """The pages of assessments and alignments, for somebody who is signed in; the page is in the state named."""
    assessment = f"/admin/assessments/{found['assessment-done']}"
    paths = {
        "assessments": "/admin/assessments",
        **{
            f"assessment-{name}": f"/admin/assessments/{found[f'assessment-{name}']}"
            for name in ("done", "running", "failed")
        },
        "assessment-answers": f"{assessment}/answers",
        "assessment-new": "/admin/assessments/new",
        "alignments": "/admin/alignments",
        **{f"alignment-{name}": f"/admin/alignments/{found[name]}" for name in ("done", "training", "failed")},
        "alignment-new": f"/admin/alignments/new?base={BASE}",
    }
    for name, path in paths.items():
        page.goto(parlor.url + path)
        yield name
    page.goto(f"{parlor.url}/admin/assessments/new?model=harbour-done-aligned&base={BASE}")
    page.get_by_label("Temperature of the answers").fill("hot")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Temperature of the answers: expected")
    yield "assessment-new-refused"
    page.goto(f"{parlor.url}/admin/alignments/new?base={BASE}")
    page.get_by_label("Critics", exact=True).fill("900")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Critics: expected fewer")
    yield "alignment-new-refused"
