"""A training in a real browser: started by a click, followed without loading the page again, and played against."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from app.core.extensions import writing
from app.registry import get_model
from tests.browser.admin_states import sign_in
from tests.browser.steps import lines, say, wait_for_turn
from tests.browser.visitor import Visitor
from tests.jobs import SMALL, make_dataset, model_of
from tests.stack import Stack
from tests.tables import database, settings_of, taboo

NAME = "quartz-trained"
STEPS = 200


@pytest.fixture
def admin(parlor: Stack, visitor: Visitor) -> Page:
    """A tab in which an experimenter has signed in by a link."""
    page = visitor.context.new_page()
    sign_in(parlor, page)
    return page


def test_a_model_is_trained_from_a_dataset_and_plays_a_person_without_a_restart(
    parlor: Stack, admin: Page, visitor: Visitor
) -> None:
    with database(parlor) as engine, ThreadPoolExecutor(1) as pool:  # Playwright has the loop of this thread
        dataset = pool.submit(make_dataset, engine, settings_of(parlor), "For a training", "taboo").result()
    admin.goto(f"{parlor.url}/admin/datasets/{dataset.id}")
    admin.get_by_role("link", name="Train", exact=True).click()
    admin.get_by_text("From scratch (tiny)").click()
    expect(admin.get_by_label("Base", exact=True)).to_be_hidden()
    budget = admin.get_by_role("region", name="Budget")
    expect(budget).to_be_hidden()  # a training here costs nothing
    admin.locator("input[value=openai]").check()
    expect(budget).to_be_visible()
    admin.locator("input[value=local]").check()
    admin.get_by_label("Name", exact=True).fill(NAME)
    admin.locator("#epochs").fill("")
    admin.locator("#batch").fill("8")
    own = {**{name: value for name, value in SMALL.items() if name != "batch"}, "max_steps": STEPS}
    admin.get_by_label("Further fields").fill("\n".join(f"{name} = {value}" for name, value in own.items()))
    expect(admin.locator("#expected")).to_contain_text(re.compile(r"Cost, about\s*none"))
    admin.get_by_role("button", name="Start the training").click()
    expect(admin).to_have_url(re.compile(r"/admin/jobs/\d+$"))
    admin.evaluate("window.here = true")
    job = admin.url

    step = admin.locator("#progress [data-figure=step]")
    expect(step).not_to_have_text("0")
    seen = admin.locator("#live progress").evaluate("(bar) => bar.value")
    admin.wait_for_function("(seen) => document.querySelector('#live progress')?.value > seen", arg=seen)
    curve = admin.locator("#curve figure[data-state=drawn]")
    expect(curve.locator("svg")).to_be_visible()
    expect(curve.locator("[data-sentence]")).to_contain_text("at step 1,")
    expect(admin.locator("#log pre")).to_contain_text("step ")
    expect(admin.locator("#head .tag")).to_have_text("done")
    expect(curve.locator("[data-sentence]")).to_contain_text(f"at step {STEPS}.")
    expect(admin.locator("#log pre")).to_contain_text("finished with the weights of step")
    expect(admin.get_by_role("button", name="Cancel")).to_have_count(0)
    assert admin.evaluate("window.here === true")

    admin.get_by_role("link", name="To the model").click()
    expect(admin.get_by_role("heading", level=1)).to_have_text(NAME)
    admin.goto(parlor.url + "/admin/models")
    expect(admin.get_by_role("link", name=NAME)).to_be_visible()
    admin.goto(parlor.url + "/admin/jobs")
    expect(
        admin.get_by_role("row").filter(has=admin.locator(f'a[href="{job.removeprefix(parlor.url)}"]'))
    ).to_contain_text("done")

    with database(parlor) as engine:
        model = model_of(engine, NAME)
        assert model is not None
        assert visitor.open(parlor.url).locator("#taboo-opponent option", has_text=model.label).count() == 0
        with writing(engine) as session:
            get_model(session, NAME).offered_to_people = True  # as after a test call and a press of the switch
        picker = visitor.open(parlor.url).locator("#taboo-opponent")
        expect(picker.locator("option", has_text=model.label)).to_have_count(1)
        page = visitor.open(taboo(parlor, "attacker", opponent=model.label).url)
        wait_for_turn(page)
        say(page, "What do you like best?")
        expect(lines(page)).to_have_count(2)  # the first answer waits until the weights are loaded
        with writing(engine) as session:
            get_model(session, NAME).offered_to_people = False  # the other tests' visitors know nothing of it
