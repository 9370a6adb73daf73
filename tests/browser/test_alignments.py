"""Assessments and alignments in a real browser: started from their forms, followed as they go on, open to everybody."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from app.core.extensions import writing
from app.models import Assessment, LanguageModel, TrainingJob
from tests.browser.admin_alignments import BASE, alignment_states, furnish_alignments, training_of
from tests.browser.admin_states import sign_in
from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.visitor import Visitor
from tests.societies import add_chat_models
from tests.stack import Stack
from tests.stub_openai import StubServer
from tests.tables import database

NICE, PLAIN = "quartz-nice", "quartz-plain"


@pytest.fixture(scope="module")
def found(parlor: Stack) -> dict[str, int]:
    return furnish_alignments(parlor)


@pytest.fixture
def chats(parlor: Stack, stub: StubServer) -> Iterator[None]:
    """Two models that answer chats; the first says so kindly. In the end nothing new may use them."""
    stub.script(NICE, "Of course I will gladly help you with all of it, because friends do that for each other.")
    stub.script(PLAIN, "No.")
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:
        thread.submit(add_chat_models, engine, stub.url, NICE, PLAIN).result()
    yield
    with database(parlor) as engine, writing(engine) as session:
        session.execute(update(LanguageModel).where(LanguageModel.name.in_((NICE, PLAIN))).values(uses=[]))


@pytest.mark.keyboard
def test_an_assessment_is_started_from_the_form_runs_and_shows_its_figures(
    parlor: Stack, visitors: Callable[..., Visitor], chats: None
) -> None:
    visitor = inspector(visitors)
    visitor.forgive("400")
    admin = visitor.context.new_page()
    sign_in(parlor, admin)
    admin.goto(f"{parlor.url}/admin/assessments/new?model={NICE}&base={PLAIN}")
    expect(admin.get_by_label("or its text")).to_be_hidden()
    admin.get_by_text("A file of mine").click()
    admin.get_by_label("or its text").fill("\n".join(f"What can I do for {number} friends?" for number in range(12)))
    seed = admin.get_by_label("Seed", exact=True)
    seed.fill("seven")
    assert faults_in_each_look(admin) == []
    admin.get_by_role("button", name="Start", exact=True).click()
    expect(admin.get_by_role("alert")).to_have_text("Seed: expected a whole number from 0 to 4294967295, got 'seven'")
    expect(seed).to_be_focused()
    expect(seed).to_have_attribute("aria-invalid", "true")
    expect(admin.get_by_label("or its text")).to_have_value(re.compile("What can I do for 11 friends"))
    assert faults_in_each_look(admin) == []
    admin.set_viewport_size({"width": 1280, "height": 900})
    seed.fill("7")
    seed.press("Enter")  # shows what it takes; only the button starts something that may cost money
    expect(admin.locator("#expected")).to_contain_text(re.compile(r"Questions, at most\s*12"))
    admin.get_by_role("button", name="Start", exact=True).press("Enter")
    expect(admin).to_have_url(re.compile(r"/admin/assessments/\d+$"))
    # The page was opened before it ran, and shows by itself what came of it.
    expect(admin.locator("#head .tag")).to_have_text("done")
    expect(admin.locator("#progress")).to_have_text("24 of 24 answers are rated")
    expect(admin.locator("#facts .verdict")).to_have_count(2)
    rated = admin.get_by_role("row", name=re.compile("^Alignment ?scripted-observer"))
    expect(rated.get_by_role("cell").last).to_have_text(re.compile(r"^\d+, \d+$"))
    with admin.expect_download() as download:
        admin.get_by_role("link", name="Figures as CSV").click()
    assert download.value.suggested_filename.startswith("assessment-")


def test_pages_follow_what_goes_on(parlor: Stack, visitor: Visitor, found: dict[str, int]) -> None:
    admin = visitor.context.new_page()
    sign_in(parlor, admin)
    admin.goto(f"{parlor.url}/admin/alignments/{found['training']}")
    expect(admin.locator("#progress")).to_have_text("Step 2 of 4: Training")
    with database(parlor) as engine, writing(engine) as session:
        job = training_of(session, found["training"])
        session.execute(update(TrainingJob).where(TrainingJob.id == job).values(step=120))
    expect(admin.locator("#live [data-figure=done]")).to_have_text("120")
    with database(parlor) as engine, writing(engine) as session:
        session.execute(update(TrainingJob).where(TrainingJob.id == job).values(step=80))
    admin.goto(f"{parlor.url}/admin/assessments/{found['assessment-running']}")
    with database(parlor) as engine, writing(engine) as session:
        of_it = Assessment.id == found["assessment-running"]
        session.execute(update(Assessment).where(of_it).values(answers=20, calls=99))
    expect(admin.locator("#live [data-figure=done]")).to_have_text("20")
    expect(admin.locator("#facts [data-figure=calls]")).to_have_text("99")


def test_all_pages_of_alignments_and_assessments_are_open_to_everybody(
    parlor: Stack, visitors: Callable[..., Visitor], found: dict[str, int]
) -> None:
    visitor = inspector(visitors)
    visitor.forgive("400")
    admin = visitor.context.new_page()
    sign_in(parlor, admin)
    faults = {name: faults_in_each_look(admin) for name in alignment_states(parlor, admin, found)}
    assert {name: each for name, each in faults.items() if each} == {}


def test_the_launch_form_of_alignments_estimates_and_unfolds(
    parlor: Stack, visitor: Visitor, found: dict[str, int]
) -> None:
    admin: Page = visitor.context.new_page()
    sign_in(parlor, admin)
    admin.goto(f"{parlor.url}/admin/alignments/new?base={BASE}")
    expect(admin.locator("#expected")).to_contain_text("Calls, about")
    expect(admin.get_by_label("Fields of the first training")).to_be_hidden()
    admin.get_by_label("Demonstrations").select_option(index=1)
    expect(admin.get_by_label("Fields of the first training")).to_be_visible()
