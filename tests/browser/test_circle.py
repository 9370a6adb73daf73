"""The whole circle: what a person played becomes rows, the rows a model, the model a condition of the next study."""

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Page, expect

from app.core.extensions import writing
from app.studies import store
from app.studies.design_files import load_design
from app.studies.waves import open_wave
from tests.browser.admin_states import sign_in
from tests.browser.study_walk import main_button, play
from tests.browser.visitor import Visitor
from tests.jobs import SMALL
from tests.stack import Stack
from tests.study_pages import door_of
from tests.tables import database
from tests.waves import STUDIES, wave_file

MODEL = "circle-learner"
DESIGN = """
study: {study}
title: Sharing things
language: en
minutes: 5
devices: [desktop]
contact: {{name: Ann Example, mail: ann@parlor.test, ethics: none}}
privacy:
  controller: Example University
  basis: consent
  delete_my_data_until: 30 days after taking part
  vendor_ids_deleted: 90 days after close
  recipients: [researchers of the university above]
consent: {{text: consent.md, training: ask, debrief: debrief.md}}
partner_told: computer
game: negotiation
conditions:
  model: [{model}]
same_for_all:
  reply_after: {{seconds_per_word: 0, least: 0, most: 0}}
  limits: {{turn: 10 min, match: 20 min, moves: 30}}
  feedback: own points
plan:
  within: [model]
  matches: 1
  assign: {{seed: 1, replace: drop-outs}}
material: {{contexts: contexts.txt, each: once a person, held_out: false}}
instructions: instructions.md
pay: {{currency: USD, base: 1.00, bonus: {{per_point: 0.10, of: utility, model_failure: 0.25}}, most_a_person: 2.00}}
"""


def test_what_a_person_played_becomes_a_model_that_the_next_study_plays_against(
    parlor: Stack, visitors: Callable[..., Visitor], tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as pool:  # Playwright has the loop of this thread
        pool.submit(open_study, parlor, study_files(tmp_path, "circle", "scripted")).result()
    ann, _ = (
        take_part(
            visitors().open(parlor.url + door_of(name, study="circle")), f"Ahoy, it is {name}.", training=name == "ann"
        )
        for name in ("ann", "ben")
    )

    admin = visitors().context.new_page()
    sign_in(parlor, admin)
    dataset = make_dataset(parlor, admin)
    rows = admin.request.get(f"{dataset}.jsonl").text()
    assert ("it is ann" in rows, "it is ben" in rows) == (True, False)
    train(admin)
    model = admin.url

    files = study_files(tmp_path, "circle-next", MODEL)
    link = load_and_open(parlor, admin, files)
    expect(visitors().open(link).get_by_role("button", name="Read on, then decide")).to_be_visible()

    ann.get_by_role("link", name="Stop, or delete my data").click()
    ann.get_by_role("button", name="No more training on my games").click()
    expect(ann.get_by_role("status")).to_have_text("From now on, nothing new is trained on your games.")
    admin.goto(dataset)
    expect(admin.get_by_role("status")).to_contain_text("Unusable since")
    expect(admin.get_by_role("link", name="Download as JSONL")).to_have_count(0)
    for page in (model, f"{model}/lineage"):
        admin.goto(page)
        expect(admin.get_by_role("main")).to_contain_text("cannot forget them")


def study_files(folder: Path, study: str, model: str) -> list[Path]:
    """A study of one match against a model, with the texts of an example; the design is the first of its files."""
    own = Path(shutil.copytree(STUDIES / "two-models", folder / study))
    (own / "two-models.yaml").unlink()
    design = own / f"{study}.yaml"
    design.write_text(DESIGN.format(study=study, model=model))
    return [design, *(path for path in own.iterdir() if path != design)]


def open_study(parlor: Stack, files: list[Path]) -> None:
    with database(parlor) as engine, writing(engine) as session:
        store.load(session, load_design(files[0]))
        session.flush()
        open_wave(session, wave_file(of=files[0].stem))


def take_part(page: Page, words: str, *, training: bool) -> Page:
    """Go all the way through, and say at both questions whether models may be trained on it."""
    main_button(page).click()
    page.locator("[name=part]").check()
    page.locator("[name=training]").set_checked(training)
    main_button(page).click()
    main_button(page).click()
    play(page, "Start game 1", words=words)
    main_button(page).click()
    page.get_by_label("Yes, keep them").check()
    page.locator(f"[name=training][value={'yes' if training else 'no'}]").check()
    main_button(page).click()
    expect(page.locator("#code")).to_have_text("C7RX94LM")
    return page


def make_dataset(parlor: Stack, admin: Page) -> str:
    """Build a dataset of the study's matches; its address."""
    admin.goto(f"{parlor.url}/admin/datasets/new")
    admin.get_by_label("Game", exact=True).select_option("negotiation")
    admin.get_by_text("Further conditions on matches").click()
    admin.locator("#study").fill("circle")
    admin.locator("[name=filter][value=all]").check()
    admin.locator("#style").select_option("compact")
    admin.locator("#name").fill("circle-rows")
    admin.get_by_role("button", name="Make the dataset").click()
    expect(admin).to_have_url(re.compile(r"/admin/datasets/\d+$"))
    return admin.url


def train(admin: Page) -> None:
    """Train a model of a few weights on the dataset whose page is open, and go to its page."""
    admin.get_by_role("link", name="Train", exact=True).click()
    admin.get_by_text("From scratch (tiny)").click()
    admin.get_by_label("Name", exact=True).fill(MODEL)
    admin.locator("#epochs").fill("")
    admin.locator("#batch").fill("4")
    admin.locator("#eval_share").fill("")  # there is one match
    own = {**{name: value for name, value in SMALL.items() if name != "batch"}, "length": 2048, "max_steps": 2}
    admin.get_by_label("Further fields").fill("\n".join(f"{name} = {value}" for name, value in own.items()))
    admin.get_by_role("button", name="Start the training").click()
    expect(admin.locator("#head .tag")).to_have_text(re.compile("^(done|failed)$"))
    assert admin.locator("#head .tag").inner_text() == "done", admin.get_by_role("main").inner_text()
    admin.get_by_role("link", name="To the model").click()
    expect(admin.get_by_role("heading", level=1)).to_have_text(MODEL)


def load_and_open(parlor: Stack, admin: Page, files: list[Path]) -> str:
    """Load a study from its files and open a wave of it; the link for people."""
    admin.goto(f"{parlor.url}/admin/studies/new")
    admin.locator("#files").set_input_files(files)
    admin.get_by_role("button", name="Load the study").click()
    expect(admin.get_by_role("main")).to_contain_text(MODEL)
    admin.get_by_role("link", name="Open a wave").click()
    admin.locator("[name=recruiter][value=link]").check()
    admin.locator("#wave").fill("next")
    admin.locator("#places").fill("10")
    admin.locator("#most_spent").fill("100")
    admin.get_by_role("button", name="Open the wave").click()
    return admin.get_by_label("Send this link").input_value()
