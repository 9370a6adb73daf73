"""The admin pages of studies in a real browser: an example is tried out, watched and paused, and open to everybody."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect
from sqlalchemy import Engine

from app.core.extensions import writing
from app.registry import add_scripted_model
from tests.browser.admin_states import sign_in
from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.tables import database


@pytest.fixture
def admin(parlor: Stack, visitor: Visitor) -> Page:
    """A tab in which an experimenter has signed in by a link."""
    page = visitor.context.new_page()
    sign_in(parlor, page)
    return page


@pytest.fixture(scope="module", autouse=True)
def _small_model(parlor: Stack) -> None:
    """A scripted model for the small one that the examples name, which this Parlor goes without."""

    def add(engine: Engine) -> None:
        with writing(engine) as session:
            add_scripted_model(session, "tiny", None, {"manner": "casual"})

    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:
        thread.submit(add, engine).result()


def try_example(parlor: Stack, page: Page, name: str) -> None:
    """Load an example and open its wave."""
    page.goto(f"{parlor.url}/admin/studies")
    page.get_by_role("button", name=f"Try it {name}").click()
    expect(page).to_have_url(re.compile(r"/admin/studies/waves/\d+$"))


@pytest.mark.keyboard
def test_an_example_is_tried_by_its_link_and_seen_on_the_page_of_its_wave(
    parlor: Stack, admin: Page, visitors: Callable[..., Visitor]
) -> None:
    try_example(parlor, admin, "taboo-roles")
    link = admin.get_by_label("Send this link").input_value()
    assert link.endswith("/s/taboo-roles/try")
    guest = visitors().open(link)
    guest.get_by_role("button", name="Read on, then decide").click()
    expect(guest).to_have_url(re.compile(r"/s/me/"))
    person = admin.get_by_role("table", name=re.compile("^People of this wave")).get_by_role("rowheader")
    expect(person).to_have_count(1, timeout=20_000)  # the page keeps itself fresh
    admin.get_by_role("button", name="Close", exact=True).click()
    expect(admin.get_by_role("dialog")).to_contain_text("cannot be reopened")
    expect(admin.get_by_role("button", name="Back")).to_be_focused()
    admin.keyboard.press("Escape")
    expect(admin.get_by_role("dialog")).to_have_count(0)
    admin.get_by_role("button", name="Pause", exact=True).click()
    expect(admin.locator("#state")).to_have_text("paused")
    person.get_by_role("link").click()
    expect(admin.get_by_role("heading", name="What happened")).to_be_visible()


def test_the_pages_of_studies_are_open_to_everybody(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    page = inspector(visitors).context.new_page()
    sign_in(parlor, page)
    try_example(parlor, page, "two-models")
    wave = page.url
    guest = visitors().open(page.get_by_label("Send this link").input_value())
    guest.get_by_role("button", name="Read on, then decide").click()
    guest.goto(f"{guest.url}/report")
    guest.get_by_label("Something else").check()
    guest.get_by_role("button", name=re.compile("^(Send|Report and go on)$")).click()
    expect(guest.get_by_role("status")).to_contain_text("Thank you")
    page.get_by_role("link", name="Sharing things").click()
    study = page.url.partition("?")[0]
    reports = f"{parlor.url}/admin/studies/reports"
    page.goto(reports)
    page.get_by_role("link", name=re.compile("^Open")).first.click()
    expect(page.get_by_role("heading", name="What was done")).to_be_visible()
    report = page.url
    faults: dict[str, list[str]] = {}
    for address in (
        f"{parlor.url}/admin/studies", f"{parlor.url}/admin/studies/new", study, f"{study}/texts", f"{study}/edit",
        f"{study}/waves/new",
        wave, f"{wave}/pay", reports, report,
    ):  # fmt: skip
        page.goto(address)
        faults[address] = faults_in_each_look(page)
    assert {address: found for address, found in faults.items() if found} == {}


def test_a_study_is_written_in_the_editor_and_nothing_typed_is_lost(parlor: Stack, admin: Page) -> None:
    admin.goto(f"{parlor.url}/admin/studies")
    admin.get_by_role("link", name="Start from it two-models").click()
    text = admin.locator("#yaml")
    written = text.input_value()
    text.fill(written.replace("minutes: 25", "minutes: many"))
    line = written.splitlines().index("minutes: 25") + 1
    expect(admin.locator("#checked .bad")).to_contain_text("minutes: expected")  # while one types
    expect(admin.locator("#lines .at-bad")).to_have_text(str(line))
    expect(admin.locator("#costs table")).to_have_count(0)
    admin.get_by_role("link", name=f"Line {line}").click()
    expect(text).to_be_focused()
    questions: list[str] = []

    def stay(dialog: Dialog) -> None:
        questions.append(dialog.type)
        dialog.dismiss()

    admin.on("dialog", stay)
    admin.get_by_role("link", name="Models").click(no_wait_after=True)
    expect(text).to_have_value(written.replace("minutes: 25", "minutes: many"))
    assert questions == ["beforeunload"]
    dropped = written.replace("title: Sharing things", "title: Written here")
    admin.evaluate(
        """([name, text]) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], name));
            document.querySelector("#editor").dispatchEvent(new DragEvent("drop", { dataTransfer, cancelable: true }));
        }""",
        ["other.yaml", dropped],
    )
    expect(text).to_have_value(dropped)
    expect(admin.locator("#costs table")).to_have_count(1)
    admin.get_by_role("button", name="Save as version 1").click()
    expect(admin.get_by_role("heading", level=1)).to_have_text("Written here")
    assert questions == ["beforeunload"]


def test_money_is_seen_and_decided_on_a_phone(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    page = visitors(viewport={"width": 390, "height": 844}).context.new_page()
    sign_in(parlor, page)
    try_example(parlor, page, "two-models")
    wave = page.url
    guest = visitors().open(page.get_by_label("Send this link").input_value())
    guest.get_by_role("button", name="Read on, then decide").click()
    guest.locator("[name=part]").check()
    guest.get_by_role("button", name="Agree and go on").click()
    guest.get_by_role("link", name="Leave the study").click()
    guest.get_by_role("button", name="Stop now").click()
    expect(guest.locator("h1")).to_have_text("You have left the study.")
    code = re.search(r"p[0-9a-f]{10}", guest.locator("main").inner_text())
    assert code is not None
    page.goto(f"{wave}/pay")
    page.get_by_label("Person").fill(code[0])
    page.get_by_label("Add or take, USD").fill("1.50")
    page.get_by_label("Reason", exact=True).first.fill("The page hung")
    page.get_by_role("button", name="Adjust").click()
    owed = page.get_by_role("table", name=re.compile("^Who the next batch pays"))
    in_sight(page, owed.get_by_role("cell").filter(has_text=re.compile(r"^1\.5\d$")).last)
    in_sight(page, page.locator("summary").filter(has_text="Reverse"))
    figure = owed.locator("td.num[data-as]").first
    figure.evaluate("(cell) => cell.replaceChildren()")
    expect(figure).to_be_hidden()  # a label without a value says nothing
    page.goto(wave)
    spent = page.get_by_role("table", name=re.compile("^Spent against the cap"))
    for figure in spent.get_by_role("cell").all():
        in_sight(page, figure)


def in_sight(page: Page, found: Locator) -> None:
    """Assert that something is wholly between the edges of the page, without scrolling a table sideways."""
    expect(found).to_be_visible()
    page.wait_for_load_state()  # the stylesheets
    box = found.bounding_box()
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width, found.inner_text()
